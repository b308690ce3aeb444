// The inode table: which nodeid is which inode of the project (or store), and how to reach it again without keeping a
// descriptor for each: by file handle where filesystem and privileges allow, else by parent and name with an identity
// check (device, inode number, birth time), else by its link in the store. Lock order: barrier → object lock
// (Inode::Lock, striped) → Table's own mutex → descriptor cache. Nothing here calls the recorder while the table's
// mutex is held. Call everything with the engine's own credentials: handles need its privileges, and what is opened
// here is shared by all callers.
#pragma once

#include <sys/stat.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inode/chain.h"
#include "inode/descriptors.h"
#include "inode/inode.h"
#include "record/subject.h"
#include "sys/fd.h"
#include "sys/opener.h"
#include "sys/result.h"

namespace inode {

struct Options {
  int project_fd = -1;  // O_PATH
  int store_fd = -1;
  size_t max_descriptors = 512;   // of the descriptor caches together
  bool force_paths = false;       // don't use file handles even where they work
  sys::Opener* opener = nullptr;  // asked when modes forbid us to open a file's bytes; of an ordinary user's engine
};

struct ByNodeid {
  static Inode*& Next(Inode& inode) { return inode.next_by_nodeid_; }
  static uint64_t Hash(const Inode& inode) { return inode.nodeid_; }
};

struct ByKey {
  static Inode*& Next(Inode& inode) { return inode.next_by_key_; }
  // Without the birth time, which doesn't count everywhere.
  static uint64_t Hash(uint64_t dev, uint64_t ino);
  static uint64_t Hash(const Inode& inode) { return Hash(inode.dev_, inode.ino_); }
};

class Table {
 public:
  // After the last fork: descriptors are reopened through this process's /proc/self/fd.
  static sys::Result<std::unique_ptr<Table>> Open(const Options& options);
  ~Table();

  Ref root() { return Ref(*root_); }
  // The store's own folder, what the door in the root of the mount leads to; `st` gets its statx.
  sys::Result<Ref> StoreRoot(struct statx* st);
  Ref Find(uint64_t nodeid);  // empty: unknown, answer ESTALE

  // Looks `name` up in `dir` and makes or finds its slot; `st` gets its statx (STATX_BASIC_STATS | STATX_BTIME,
  // AT_SYMLINK_NOFOLLOW). Doesn't count a kernel lookup. Files keep one slot for (dev, ino, birth) wherever they are
  // seen; a new slot's place is dir/name, a known slot's place is brought up to date. Realm: below a kStore directory
  // it is kStore, except that what lies in preserved/xx/, nameless/xx/ and staging/ is kProject.
  sys::Result<Ref> LookUp(Inode& dir, const char* name, struct statx* st);
  // The same for an open O_PATH (or any) descriptor of an object without a name (O_TMPFILE).
  sys::Result<Ref> Adopt(int fd, Inode& dir, struct statx* st);

  void AddLookup(Inode& inode, uint64_t count = 1);
  // Takes lookups back; at zero, and with no child and Ref left, the slot goes. `on_gone` (set once, before requests
  // come) is told of each nameless place the inode had, with no lock held.
  void Forget(uint64_t nodeid, uint64_t count);
  void SetOnGone(std::function<void(const std::string& nameless_place, record::ObjectId object)> on_gone);

  // The inode is now at dir/name (rename, link, attach). A file's place until now is remembered as another
  // one if it is still good.
  void Place(Inode& inode, Inode& dir, std::string_view name);
  // dir/name no longer leads to the inode. `store_place`: where a link of it lies now (below the store), "" when none;
  // `nameless`: that link goes when the kernel has forgotten the inode.
  void Displace(Inode& inode, Inode& dir, std::string_view name, const std::string& store_place, bool nameless);
  // A directory about to be removed: keep `path_fd` (if the limit of pins allows) so that stat and `.` go on in it.
  // Its (dev, ino, birth) no longer leads to this slot once MarkDead was called.
  void PinDirectory(Inode& dir, sys::UniqueFd path_fd) { Pin(dir, std::move(path_fd)); }
  // The same for a file whose last name goes and that has no link in the store.
  void Pin(Inode& inode, sys::UniqueFd path_fd);
  void Unpin(Inode& inode);
  void MarkDead(Inode& dir);

  // Hold one from before names change on the project (rename, unlink into the store) until Place and Displace were
  // told: who looks for an inode by its place meanwhile, and doesn't find it, waits instead of answering ESTALE. Don't
  // ask for descriptors while holding it.
  class Moving {
   public:
    explicit Moving(Table& table);
    ~Moving();
    Moving(const Moving&) = delete;
    Moving& operator=(const Moving&) = delete;

   private:
    Table& table_;
  };

  // Cached descriptors; the FdRef keeps it open even if the cache drops it. Errors: ESTALE when the inode can't be
  // reached.
  sys::Result<FdRef> DirectoryFd(Inode& dir);  // O_PATH | O_DIRECTORY, for *at calls
  sys::Result<FdRef> PathFd(Inode& inode);     // O_PATH | O_NOFOLLOW
  // O_RDONLY (O_NOATIME not set: reads count as on the folder) or O_RDWR; regular files only (EISDIR, ELOOP, ENXIO).
  sys::Result<FdRef> DataFd(Inode& inode, bool write);
  // After chmod/unlink nothing needs dropping; after a file became unreachable for writing (rename over) call this.
  void DropDescriptors(Inode& inode);

  size_t size() const;                                    // known inodes
  size_t descriptors() const;                             // open in the caches and pins
  bool has_handles() const { return mount_fd_.valid(); }  // file handles work here

 private:
  friend class Inode;
  friend class Ref;

  struct Entry {
    Inode* dir = nullptr;  // counted in its holds_
    std::string name;
  };
  // What few inodes have.
  struct Extras {
    std::vector<Entry> others;          // other places of a file with several links, the newest last
    std::string store_place;            // of the newest link below the store
    std::vector<std::string> nameless;  // links below the store that go with the slot
    std::vector<Inode*> lent;           // as Inode::lent_, when parent() has had several answers
    std::shared_ptr<sys::UniqueFd> pin;
  };
  // What is to be done once the mutex is free: descriptors to close, on_gone to call.
  struct Leftovers {
    struct Nameless {
      std::string place;
      record::ObjectId object;
    };
    std::vector<Nameless> nameless;
    std::vector<FdRef> descriptors;
  };
  // Who an inode is, from a statx.
  struct Key {
    uint64_t dev;
    uint64_t ino;
    int64_t birth_ns;
    mode_t type;
    bool own_mount;  // on the mount of the project folder: its handle can be opened
  };
  struct Step {
    Ref dir;  // empty: below the store
    std::string name;
  };

  explicit Table(size_t max_descriptors);
  sys::Result<void> Prepare(const Options& options);
  void DetectHandles();
  sys::Result<Inode*> MakeRoot(const sys::UniqueFd& fd, uint64_t nodeid, Realm realm, Inode::Role role);
  Key KeyOf(const struct statx& st) const;
  sys::Result<Key> KeyAt(int fd, const char* name) const;
  bool Is(const Inode& inode, const Key& key) const;

  // --- slots (table.cc) ---
  sys::Result<Ref> Intern(int fd, const char* name, Inode& dir, const struct statx& st, uint64_t moves);
  void Unreference(Inode& inode);
  void Settle(Leftovers leftovers);  // without the mutex
  std::mutex& ObjectLock(const Inode& inode) { return object_locks_[inode.nodeid() % object_locks_.size()]; }
  static std::pair<Realm, Inode::Role> Below(const Inode& dir, std::string_view name, mode_t type);
  // With the mutex held:
  Inode* FindNodeid(uint64_t nodeid);
  Inode* FindKey(const Key& key);
  Inode* Make(uint64_t nodeid, const Key& key, FileHandle handle, Realm realm, Inode::Role role);
  void Unkey(Inode& inode);
  void Unlend(Inode& inode, std::vector<Inode*>* check);
  void Reap(std::vector<Inode*> check, Leftovers* leftovers);

  // --- places (place.cc); with the mutex held: ---
  void SetPlace(Inode& inode, Inode& dir, std::string_view name, bool keep_other, Leftovers* leftovers);
  void CutCycle(const Inode& inode, Inode& dir, Leftovers* leftovers);
  void AddOther(Inode& inode, Inode& dir, std::string_view name, Leftovers* leftovers);
  void DropOther(Inode& inode, const Inode& dir, std::string_view name, Leftovers* leftovers);
  void Unhold(Inode* dir, Leftovers* leftovers);
  Extras& ExtrasOf(Inode& inode);
  void TrimExtras(Inode& inode);  // frees them when they say nothing
  // Without it:
  record::Subject* LendParent(Inode& inode);
  std::string NameOf(Inode& inode);
  Step NewestPlace(Inode& inode);  // without a directory: it has none
  std::vector<Step> PlacesOf(Inode& inode);

  // --- reaching (reach.cc) ---
  sys::Result<sys::UniqueFd> OpenFresh(Inode& inode, int flags);
  sys::Result<sys::UniqueFd> OpenAsOurselves(Inode& inode, int flags);
  FdRef Kept(Inode& inode);
  static bool UsesHandle(const Inode& inode);
  sys::Result<sys::UniqueFd> OpenByHandle(Inode& inode, int flags);
  sys::Result<sys::UniqueFd> OpenByPlace(Inode& inode);
  uint64_t Moves();
  bool MayHaveMoved(uint64_t moves);
  bool MovedSince(uint64_t moves, std::chrono::steady_clock::time_point deadline);
  sys::Result<sys::UniqueFd> OpenStep(const Step& step, Inode& inode);
  bool IsAt(const Step& step, Inode& inode);
  sys::Result<sys::UniqueFd> OpenAt(int dir_fd, const char* name, Inode& inode);
  sys::Result<FdRef> Near(Inode& dir);
  sys::Result<FdRef> WalkTo(Inode& dir);
  sys::Result<sys::UniqueFd> Reopen(int fd, int flags);

  // Constant once opened.
  uint64_t project_dev_ = 0;
  uint64_t project_mount_ = 0;  // 0: the kernel doesn't say
  bool births_ = true;          // birth times stay (overlayfs: they change at copy-up)
  std::shared_ptr<sys::UniqueFd> project_fd_;
  std::shared_ptr<sys::UniqueFd> store_fd_;
  sys::Opener* opener_ = nullptr;
  sys::UniqueFd mount_fd_;  // valid: handles work
  sys::UniqueFd proc_fd_;   // /proc/self/fd
  size_t max_pins_ = 0;
  std::function<void(const std::string&, record::ObjectId)> on_gone_;
  Inode* root_ = nullptr;
  Inode* store_root_ = nullptr;

  std::array<std::mutex, 256> object_locks_;

  std::mutex moving_mutex_;  // guards the two counts; no other lock is taken under it
  std::condition_variable moved_;
  uint32_t moves_under_way_ = 0;
  uint64_t moves_done_ = 0;

  mutable std::mutex mutex_;  // guards what follows, and the fields of Inode that say so
  Chain<Inode, ByNodeid> by_nodeid_;
  Chain<Inode, ByKey> by_key_;
  std::unordered_map<uint64_t, Extras> extras_;  // by nodeid
  uint64_t next_nodeid_;
  size_t pins_ = 0;

  DescriptorCache cache_;
};

}  // namespace inode
