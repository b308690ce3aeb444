// One known inode, and the reference that keeps its slot alive. Slots are made by the Table only.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "inode/handle.h"
#include "record/subject.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace inode {

class Ref;
class Table;

// What an inode belongs to. Things of the store itself (packs, index, journal, its folders) are never captured;
// preserved files and staged folders with all below them are project objects wherever they lie.
enum class Realm : uint8_t { kProject, kStore };

class Inode final : public record::Subject {
 public:
  Inode(const Inode&) = delete;
  Inode& operator=(const Inode&) = delete;
  ~Inode() override;

  uint64_t nodeid() const { return nodeid_; }
  Realm realm() const { return realm_; }
  bool is_directory() const { return S_ISDIR(type_); }
  mode_t type() const { return type_; }  // S_IFMT bits
  uint64_t dev() const { return dev_; }  // 0: the filesystem of the project folder
  uint64_t ino() const { return ino_; }
  bool dead() const { return HasFlag(kDead); }  // a directory that was removed

  // record::Subject. Call these only while you hold a Ref; what parent() returns stays valid as long as you do.
  record::TouchState& touch() override { return touch_; }
  void Lock() override;
  void Unlock() override;
  // `mode` has the type bits only; the handle is "" where handles don't work.
  record::Identity identity() override;
  sys::Result<sys::UniqueFd> OpenPath() override;
  // EISDIR, ELOOP or ENXIO for anything but a regular file: those are never opened.
  sys::Result<sys::UniqueFd> OpenRead() override;
  // The last known place in the project or store; nullptr and "" for the two roots and for what has no name.
  record::Subject* parent() override;
  std::string name() override;

 private:
  friend class Ref;
  friend class Table;
  friend struct ByNodeid;
  friend struct ByKey;

  // What a directory makes of the entries below it.
  enum class Role : uint8_t {
    kPlain,      // the same realm as itself
    kStoreRoot,  // preserved, nameless and staging are special
    kShards,     // preserved/, nameless/
    kBodies,     // preserved/xx/, nameless/xx/, staging/: what lies here is of the project
  };
  enum Flag : uint8_t {
    kDead = 1,            // MarkDead
    kPinned = 2,          // the table's extras have a descriptor
    kHandleVerified = 4,  // the handle led to this inode once
    kHandleWrong = 8,     // the handle is another inode's: it was taken while the name changed hands
    kPermanent = 16,      // one of the two roots: reached by a descriptor of the table's own
  };

  Inode(Table& table, uint64_t nodeid) : table_(&table), nodeid_(nodeid) {}
  bool HasFlag(Flag flag) const { return (flags_.load(std::memory_order_acquire) & flag) != 0; }
  void SetFlag(Flag flag) { flags_.fetch_or(flag, std::memory_order_acq_rel); }
  void ClearFlag(Flag flag) { flags_.fetch_and(static_cast<uint8_t>(~flag), std::memory_order_acq_rel); }
  std::string_view name_view() const { return {name_, name_bytes_}; }
  void SetName(std::string_view name);

  // Constant once the slot is in the table.
  Table* const table_;
  const uint64_t nodeid_;
  uint64_t dev_ = 0;
  uint64_t ino_ = 0;
  int64_t birth_ns_ = 0;  // 0: unknown

  record::TouchState touch_;  // guarded by the object lock

  // Guarded by the table's mutex.
  uint64_t lookups_ = 0;     // the kernel's
  Inode* parent_ = nullptr;  // counted in its holds_
  Inode* lent_ = nullptr;    // what parent() has returned, counted in its refs_ until our own refs_ are 0
  Inode* next_by_nodeid_ = nullptr;
  Inode* next_by_key_ = nullptr;
  char* name_ = nullptr;  // malloc'ed, not terminated
  uint32_t holds_ = 0;    // slots whose place (or other place) is in this directory

  // Raised under the mutex, or by who holds a Ref already; the last one is taken back under the mutex only.
  std::atomic<uint32_t> refs_{0};

  FileHandle handle_;              // constant
  uint16_t type_ = 0;              // constant
  uint16_t name_bytes_ = 0;        // guarded by the table's mutex
  Realm realm_ = Realm::kProject;  // constant
  Role role_ = Role::kPlain;       // constant
  bool keyed_ = false;             // in the key table; guarded by the table's mutex
  bool has_extras_ = false;        // guarded by the table's mutex
  std::atomic<uint8_t> flags_{0};
};

static_assert(sizeof(Inode) <= 192, "a known inode is to stay below 300 bytes with name, allocator and hash tables");

// Keeps a slot in the table alive (not the inode on disk). Dropping the last one may call the table's on_gone: drop it
// without holding locks and with the engine's own credentials.
class Ref {
 public:
  Ref() = default;
  // `inode` must be kept alive by another Ref (or by the Subject whose parent() it is) at this moment.
  explicit Ref(Inode& inode) : inode_(&inode) { inode.refs_.fetch_add(1, std::memory_order_relaxed); }
  Ref(const Ref& other) : inode_(other.inode_) {
    if (inode_ != nullptr) inode_->refs_.fetch_add(1, std::memory_order_relaxed);
  }
  Ref(Ref&& other) noexcept : inode_(other.inode_) { other.inode_ = nullptr; }
  Ref& operator=(Ref other) noexcept {
    std::swap(inode_, other.inode_);
    return *this;
  }
  ~Ref() {
    if (inode_ != nullptr) Release();
  }

  Inode* operator->() const { return inode_; }
  Inode& operator*() const { return *inode_; }
  Inode* get() const { return inode_; }
  explicit operator bool() const { return inode_ != nullptr; }

 private:
  void Release();

  Inode* inode_ = nullptr;
};

}  // namespace inode
