// The inode table: which nodeid is which inode of the project (or store), and how to reach it again without keeping a
// descriptor for each: by file handle where filesystem and privileges allow, else by parent and name with an identity check
// (device, inode number, birth time), else by its link in the store.
// Lock order: barrier → object lock (Inode::Lock, striped) → Table's own mutex → descriptor cache. Nothing here calls the recorder
// while the table's mutex is held.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "inode/descriptors.h"
#include "record/subject.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace inode {

class Table;

// What an inode belongs to. Things of the store itself (packs, index, journal, its folders) are never captured; preserved files and
// staged folders with all below them are project objects wherever they lie.
enum class Realm : uint8_t { kProject, kStore };

class Inode final : public record::Subject {
 public:
  uint64_t nodeid() const;
  Realm realm() const;
  bool is_directory() const;
  mode_t type() const;  // S_IFMT bits
  uint64_t dev() const;  // 0: the filesystem of the project folder
  uint64_t ino() const;
  bool dead() const;  // a directory that was removed

  // record::Subject. parent()/name() are the last known place in the project or store.
  record::TouchState& touch() override;
  void Lock() override;
  void Unlock() override;
  record::Identity identity() override;
  sys::Result<sys::UniqueFd> OpenPath() override;
  sys::Result<sys::UniqueFd> OpenRead() override;
  record::Subject* parent() override;
  std::string name() override;
  // … private: POD-like fields; the whole cost of a known inode (slot, name, handle, both hash tables) stays below 300 bytes.
};

// Keeps a slot in the table alive (not the inode on disk).
class Ref;  // copyable: operator->, operator*, get(), explicit bool

struct Options {
  int project_fd = -1;  // O_PATH
  int store_fd = -1;
  size_t max_descriptors = 512;  // of the descriptor caches together
};

class Table {
 public:
  static sys::Result<std::unique_ptr<Table>> Open(const Options& options);

  Ref root();
  Ref Find(uint64_t nodeid);  // empty: unknown, answer ESTALE

  // Looks `name` up in `dir` and makes or finds its slot; `st` gets its statx (STATX_BASIC_STATS | STATX_BTIME, AT_SYMLINK_NOFOLLOW).
  // Doesn't count a kernel lookup. Files keep one slot for (dev, ino, birth) wherever they are seen; a new slot's place is dir/name,
  // a known slot's place is brought up to date. Realm: below a kStore directory it is kStore, except that what lies in preserved/xx/,
  // nameless/xx/ and staging/ is kProject.
  sys::Result<Ref> LookUp(Inode& dir, const char* name, struct statx* st);
  // The same for an open O_PATH (or any) descriptor of an object without a name (O_TMPFILE).
  sys::Result<Ref> Adopt(int fd, Inode& dir, struct statx* st);

  void AddLookup(Inode& inode, uint64_t count = 1);
  // Takes lookups back; at zero, and with no child and Ref left, the slot goes. `on_gone` (set once) is told before: nameless places.
  void Forget(uint64_t nodeid, uint64_t count);
  void SetOnGone(std::function<void(const std::string& nameless_place, record::ObjectId object)> on_gone);

  // The inode is now at dir/name (rename, link, attach).
  void Place(Inode& inode, Inode& dir, std::string_view name);
  // dir/name no longer leads to the inode. `store_place`: where a link of it lies now (below the store), "" when none;
  // `nameless`: that link goes when the kernel has forgotten the inode.
  void Displace(Inode& inode, Inode& dir, std::string_view name, const std::string& store_place, bool nameless);
  // A directory about to be removed: keep `path_fd` (if the limit of pins allows) so that stat and `.` go on in it.
  // Its (dev, ino, birth) no longer leads to this slot once MarkDead was called.
  void PinDirectory(Inode& dir, sys::UniqueFd path_fd);
  void Unpin(Inode& dir);
  void MarkDead(Inode& dir);

  // Cached descriptors; the FdRef keeps it open even if the cache drops it. Errors: ESTALE when the inode can't be reached.
  sys::Result<FdRef> DirectoryFd(Inode& dir);        // O_PATH | O_DIRECTORY, for *at calls
  sys::Result<FdRef> PathFd(Inode& inode);           // O_PATH | O_NOFOLLOW
  sys::Result<FdRef> DataFd(Inode& inode, bool write);  // O_RDONLY (O_NOATIME not set: reads count as on the folder) or O_RDWR
  // After chmod/unlink nothing needs dropping; after a file became unreachable for writing (rename over) call this.
  void DropDescriptors(Inode& inode);

  size_t size() const;         // known inodes
  size_t descriptors() const;  // open in the caches and pins
  bool has_handles() const;    // file handles work here
};

}  // namespace inode
