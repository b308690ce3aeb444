#include "inode/table.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>

namespace inode {
namespace {

constexpr uint64_t kRootNodeid = 1;       // FUSE_ROOT_ID
constexpr uint64_t kStoreRootNodeid = 2;  // the others come from a counter
constexpr unsigned kStatxMask = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID;

sys::Result<void> Stat(int fd, const char* name, struct statx* st) {
  int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name == '\0' ? AT_EMPTY_PATH : 0);
  if (statx(fd, name, flags, kStatxMask, st) != 0) return sys::LastError("statx");
  return {};
}

}  // namespace

uint64_t ByKey::Hash(uint64_t dev, uint64_t ino) {
  uint64_t mixed = (ino ^ (dev << 40)) * 0x9e3779b97f4a7c15u;
  return mixed ^ (mixed >> 32);
}

// --- opening ---

Table::Table(size_t max_descriptors)
    : max_pins_(max_descriptors / 2), next_nodeid_(kStoreRootNodeid + 1), cache_(max_descriptors) {}

sys::Result<std::unique_ptr<Table>> Table::Open(const Options& options) {
  // Half of what the process may open stays free for everything else.
  size_t max_descriptors = options.max_descriptors;
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    max_descriptors = std::min<size_t>(max_descriptors, limit.rlim_cur / 2);
  }
  std::unique_ptr<Table> table(new Table(std::max<size_t>(max_descriptors, 8)));
  auto prepared = table->Prepare(options);
  if (!prepared.ok()) return prepared.error();
  return table;
}

sys::Result<void> Table::Prepare(const Options& options) {
  opener_ = options.opener;
  proc_fd_.Reset(open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!proc_fd_.valid()) return sys::LastError("open /proc/self/fd");
  project_fd_ = std::make_shared<sys::UniqueFd>(fcntl(options.project_fd, F_DUPFD_CLOEXEC, 0));
  if (!project_fd_->valid()) return sys::LastError("dup");
  struct statx st;
  auto seen = Stat(project_fd_->get(), "", &st);
  if (!seen.ok()) return seen.error();
  project_dev_ = makedev(st.stx_dev_major, st.stx_dev_minor);
  if ((st.stx_mask & STATX_MNT_ID) != 0) project_mount_ = st.stx_mnt_id;
  struct statfs fs;
  if (fstatfs(project_fd_->get(), &fs) != 0) return sys::LastError("fstatfs");
  births_ = fs.f_type != OVERLAYFS_SUPER_MAGIC;
  if (!options.force_paths) DetectHandles();

  auto root = MakeRoot(*project_fd_, kRootNodeid, Realm::kProject, Inode::Role::kPlain);
  if (!root.ok()) return root.error();
  root_ = root.value();
  if (options.store_fd < 0) return {};
  store_fd_ = std::make_shared<sys::UniqueFd>(fcntl(options.store_fd, F_DUPFD_CLOEXEC, 0));
  if (!store_fd_->valid()) return sys::LastError("dup");
  auto store_root = MakeRoot(*store_fd_, kStoreRootNodeid, Realm::kStore, Inode::Role::kStoreRoot);
  if (!store_root.ok()) return store_root.error();
  store_root_ = store_root.value();
  return {};
}

// Handles work if the filesystem makes them and we may open them. Anything that fails here means paths, not an error.
void Table::DetectHandles() {
  // open_by_handle_at takes no O_PATH descriptor as its mount.
  sys::UniqueFd mount(openat(project_fd_->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!mount.valid()) return;
  auto handle = FileHandle::Take(mount.get(), "");
  if (!handle.ok() || !handle.value().Open(mount.get(), O_PATH | O_NOFOLLOW).ok()) return;
  mount_fd_ = std::move(mount);
}

sys::Result<Inode*> Table::MakeRoot(const sys::UniqueFd& fd, uint64_t nodeid, Realm realm, Inode::Role role) {
  struct statx st;
  auto seen = Stat(fd.get(), "", &st);
  if (!seen.ok()) return seen.error();
  if (!S_ISDIR(st.stx_mode)) return sys::Error{ENOTDIR, "statx"};
  FileHandle handle;
  Key key = KeyOf(st);
  if (has_handles() && key.own_mount) {
    auto taken = FileHandle::Take(fd.get(), "");
    if (taken.ok()) handle = std::move(taken.value());
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (FindKey(key) != nullptr) return sys::Error{EINVAL, "the store is the project folder"};
  Inode* root = Make(nodeid, key, std::move(handle), realm, role);
  root->SetFlag(Inode::kPermanent);
  root->refs_.store(1, std::memory_order_relaxed);  // the table's own
  return root;
}

Table::~Table() {
  by_nodeid_.ForEach([](Inode& inode) { delete &inode; });
}

Table::Key Table::KeyOf(const struct statx& st) const {
  uint64_t dev = makedev(st.stx_dev_major, st.stx_dev_minor);
  Key key;
  key.dev = dev == project_dev_ ? 0 : dev;
  key.ino = st.stx_ino;
  key.birth_ns =
      (st.stx_mask & STATX_BTIME) != 0 ? int64_t{st.stx_btime.tv_sec} * 1000000000 + st.stx_btime.tv_nsec : 0;
  key.type = st.stx_mode & S_IFMT;
  key.own_mount = key.dev == 0 && (project_mount_ == 0 || st.stx_mnt_id == project_mount_);
  return key;
}

sys::Result<Table::Key> Table::KeyAt(int fd, const char* name) const {
  struct statx st;
  auto seen = Stat(fd, name, &st);
  if (!seen.ok()) return seen.error();
  return KeyOf(st);
}

bool Table::Is(const Inode& inode, const Key& key) const {
  return inode.ino_ == key.ino && inode.dev_ == key.dev && inode.type_ == key.type &&
         (!births_ || inode.birth_ns_ == key.birth_ns);
}

// --- finding and making ---

Ref Table::Find(uint64_t nodeid) {
  std::lock_guard<std::mutex> lock(mutex_);
  Inode* found = FindNodeid(nodeid);
  return found != nullptr ? Ref(*found) : Ref();
}

sys::Result<Ref> Table::StoreRoot(struct statx* st) {
  if (store_root_ == nullptr) return sys::Error{ENOENT, "store"};
  auto seen = Stat(store_fd_->get(), "", st);
  if (!seen.ok()) return seen.error();
  return Ref(*store_root_);
}

sys::Result<Ref> Table::LookUp(Inode& dir, const char* name, struct statx* st) {
  std::string_view text(name);
  if (text.empty() || text == "." || text == ".." || text.find('/') != text.npos) return sys::Error{EINVAL, "name"};
  auto dir_fd = DirectoryFd(dir);
  if (!dir_fd.ok()) return dir_fd.error();
  const uint64_t moves = Moves();
  auto seen = Stat(dir_fd.value().get(), name, st);
  if (!seen.ok()) return seen.error();
  return Intern(dir_fd.value().get(), name, dir, *st, moves);
}

sys::Result<Ref> Table::Adopt(int fd, Inode& dir, struct statx* st) {
  auto seen = Stat(fd, "", st);
  if (!seen.ok()) return seen.error();
  return Intern(fd, "", dir, *st, 0);
}

// `name` is "" for an object without one, which is `fd` itself; else `fd` is dir's. `moves`: asked before `st` was.
sys::Result<Ref> Table::Intern(int fd, const char* name, Inode& dir, const struct statx& st, uint64_t moves) {
  const Key key = KeyOf(st);
  const bool placed = *name != '\0';
  FileHandle handle;
  for (bool asked_handle = !has_handles() || !key.own_mount;; asked_handle = true) {
    Leftovers leftovers;
    Ref ref;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Inode* inode = FindKey(key);
      const bool known = inode != nullptr;
      if (!known && asked_handle) {
        auto [realm, role] = Below(dir, name, key.type);
        inode = Make(next_nodeid_++, key, std::move(handle), realm, role);
      }
      if (inode != nullptr) {
        ref = Ref(*inode);
        if (placed && known && MayHaveMoved(moves)) {
          // The kernel asks again about names that it knows without locking their directory: a rename may be quicker
          // than we are, and knows better.
          AddOther(*inode, dir, name, &leftovers);
        } else if (placed) {
          SetPlace(*inode, dir, name, st.stx_nlink > 1, &leftovers);
        }
      }
    }
    Settle(std::move(leftovers));
    if (ref) return ref;
    // New here: ask for its handle without the mutex, then look again, for another thread may have been first.
    // Without a handle it is reached by its place.
    auto taken = FileHandle::Take(fd, name);
    if (taken.ok()) handle = std::move(taken.value());
  }
}

Inode* Table::FindNodeid(uint64_t nodeid) {
  return by_nodeid_.Find(nodeid, [nodeid](const Inode& inode) { return inode.nodeid_ == nodeid; });
}

Inode* Table::FindKey(const Key& key) {
  return by_key_.Find(ByKey::Hash(key.dev, key.ino), [&](const Inode& inode) { return Is(inode, key); });
}

std::pair<Realm, Inode::Role> Table::Below(const Inode& dir, std::string_view name, mode_t type) {
  using Role = Inode::Role;
  if (dir.realm_ == Realm::kProject || dir.role_ == Role::kBodies) return {Realm::kProject, Role::kPlain};
  Role role = Role::kPlain;
  if (S_ISDIR(type) && dir.role_ == Role::kStoreRoot) {
    if (name == "preserved" || name == "nameless") role = Role::kShards;
    if (name == "staging") role = Role::kBodies;
  } else if (S_ISDIR(type) && dir.role_ == Role::kShards) {
    role = Role::kBodies;
  }
  return {Realm::kStore, role};
}

Inode* Table::Make(uint64_t nodeid, const Key& key, FileHandle handle, Realm realm, Inode::Role role) {
  auto* inode = new Inode(*this, nodeid);
  inode->dev_ = key.dev;
  inode->ino_ = key.ino;
  inode->birth_ns_ = key.birth_ns;
  inode->type_ = static_cast<uint16_t>(key.type);
  inode->handle_ = std::move(handle);
  inode->realm_ = realm;
  inode->role_ = role;
  inode->keyed_ = true;
  by_nodeid_.Insert(*inode);
  by_key_.Insert(*inode);
  return inode;
}

// --- going ---

void Table::AddLookup(Inode& inode, uint64_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  inode.lookups_ += count;
}

void Table::Forget(uint64_t nodeid, uint64_t count) {
  Leftovers leftovers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Inode* inode = FindNodeid(nodeid);
    if (inode == nullptr) return;
    inode->lookups_ -= std::min(inode->lookups_, count);
    Reap({inode}, &leftovers);
  }
  Settle(std::move(leftovers));
}

void Table::SetOnGone(std::function<void(const std::string&, record::ObjectId)> on_gone) {
  on_gone_ = std::move(on_gone);
}

void Table::Unreference(Inode& inode) {
  // The last reference is only given up under the mutex: under it, "no reference" can't change behind our back.
  uint32_t refs = inode.refs_.load(std::memory_order_relaxed);
  while (refs > 1) {
    if (inode.refs_.compare_exchange_weak(refs, refs - 1, std::memory_order_release, std::memory_order_relaxed)) return;
  }
  Leftovers leftovers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (inode.refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      std::vector<Inode*> check;
      if (inode.lent_ != nullptr || inode.has_extras_) Unlend(inode, &check);
      if (inode.lookups_ == 0 && inode.holds_ == 0) check.push_back(&inode);
      if (!check.empty()) Reap(std::move(check), &leftovers);
    }
  }
  Settle(std::move(leftovers));
}

// Nobody holds `inode` any more, so nobody uses what its parent() returned. Those that lost their last reference by
// this are added to `check`.
void Table::Unlend(Inode& inode, std::vector<Inode*>* check) {
  std::vector<Inode*> waiting{&inode};
  while (!waiting.empty()) {
    Inode* idle = waiting.back();
    waiting.pop_back();
    std::vector<Inode*> lent;
    if (idle->has_extras_) {
      lent.swap(extras_[idle->nodeid_].lent);
      TrimExtras(*idle);
    }
    if (idle->lent_ != nullptr) lent.push_back(std::exchange(idle->lent_, nullptr));
    for (Inode* dir : lent) {
      if (dir->refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      waiting.push_back(dir);
      check->push_back(dir);
    }
  }
}

// Deletes those of `check` that nothing needs any more, and the directories that only they needed.
void Table::Reap(std::vector<Inode*> check, Leftovers* leftovers) {
  while (!check.empty()) {
    Inode* inode = check.back();
    check.pop_back();
    if (inode->lookups_ > 0 || inode->holds_ > 0 || inode->refs_.load(std::memory_order_acquire) > 0) continue;
    // `check` may name an inode twice (a parent that is given back and that lost its last child): it is deleted when it
    // comes up last, and then it is in the table no longer.
    std::erase(check, inode);
    Unkey(*inode);
    by_nodeid_.Remove(*inode);
    auto release = [&](Inode* dir) {
      if (dir == nullptr) return;
      dir->holds_--;
      check.push_back(dir);
    };
    release(inode->parent_);
    if (inode->has_extras_) {
      auto extras = extras_.extract(inode->nodeid_);
      for (Entry& other : extras.mapped().others) release(other.dir);
      for (std::string& place : extras.mapped().nameless) {
        leftovers->nameless.push_back({std::move(place), inode->touch_.object});
      }
      if (extras.mapped().pin) {
        leftovers->descriptors.push_back(FdRef(std::move(extras.mapped().pin)));
        pins_--;
      }
    }
    for (FdRef& fd : cache_.Take(inode->nodeid_)) {
      if (fd) leftovers->descriptors.push_back(std::move(fd));
    }
    delete inode;
  }
}

void Table::Unkey(Inode& inode) {
  if (inode.keyed_) by_key_.Remove(inode);
  inode.keyed_ = false;
}

void Table::Settle(Leftovers leftovers) {
  leftovers.descriptors.clear();
  if (!on_gone_) return;
  for (const auto& nameless : leftovers.nameless) on_gone_(nameless.place, nameless.object);
}

void Table::MarkDead(Inode& dir) {
  std::lock_guard<std::mutex> lock(mutex_);
  dir.SetFlag(Inode::kDead);
  Unkey(dir);
}

size_t Table::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return by_nodeid_.size();
}

size_t Table::descriptors() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return cache_.size() + pins_;
}

}  // namespace inode
