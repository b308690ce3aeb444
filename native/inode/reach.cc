// Ways to an inode. In this order: a descriptor that is kept for it, its file handle, its places (from the nearest
// directory that can be had downwards), its link in the store. A place counts only if the very same inode is found
// there.
#include <fcntl.h>

#include <cstdio>
#include <utility>

#include "inode/table.h"

namespace inode {
namespace {

constexpr size_t kMaxDepth = 1u << 16;
// How long somebody who found nothing waits for moves that are under way.
constexpr auto kLongestMove = std::chrono::seconds(1);

// Runs `open`; while descriptors are short, makes room in the cache and runs it again.
template <typename OpenCall>
sys::Result<sys::UniqueFd> WithRoom(DescriptorCache* cache, OpenCall open) {
  for (;;) {
    auto fd = open();
    if (fd.ok()) return fd;
    int number = fd.error().number;
    if ((number != EMFILE && number != ENFILE) || !cache->DropHalf()) return fd;
  }
}

bool NotThere(int number) {
  return number == ENOENT || number == ENOTDIR || number == ELOOP || number == ESTALE || number == ENAMETOOLONG;
}

const sys::Error kStale{ESTALE, "inode"};

}  // namespace

// --- what callers ask for ---

sys::Result<FdRef> Table::DirectoryFd(Inode& dir) {
  if (!dir.is_directory()) return sys::Error{ENOTDIR, "inode"};
  return PathFd(dir);
}

sys::Result<FdRef> Table::PathFd(Inode& inode) {
  FdRef kept = Kept(inode);
  if (kept) return kept;
  kept = cache_.Get(inode.nodeid_, FdKind::kPath);
  if (kept) return kept;
  auto opened = OpenFresh(inode, O_PATH | O_NOFOLLOW);
  if (!opened.ok()) return opened.error();
  return cache_.Put(inode.nodeid_, FdKind::kPath, std::move(opened.value()));
}

sys::Result<FdRef> Table::DataFd(Inode& inode, bool write) {
  FdRef kept = cache_.Get(inode.nodeid_, FdKind::kWrite);
  if (!kept && !write) kept = cache_.Get(inode.nodeid_, FdKind::kRead);
  if (kept) return kept;
  auto opened = OpenFresh(inode, write ? O_RDWR : O_RDONLY);
  if (!opened.ok()) return opened.error();
  return cache_.Put(inode.nodeid_, write ? FdKind::kWrite : FdKind::kRead, std::move(opened.value()));
}

void Table::DropDescriptors(Inode& inode) { cache_.Take(inode.nodeid_); }

// --- ways ---

// A descriptor of the caller's own, with `flags` (O_PATH | O_NOFOLLOW, or for a regular file anything without O_CREAT).
sys::Result<sys::UniqueFd> Table::OpenFresh(Inode& inode, int flags) {
  auto opened = OpenAsOurselves(inode, flags);
  if (opened.ok() || opened.error().number != EACCES || opener_ == nullptr || (flags & O_PATH) != 0) return opened;
  // The kernel let the program have its descriptor before the mode changed: what it does with it must go on working.
  auto path = OpenAsOurselves(inode, O_PATH | O_NOFOLLOW);
  if (!path.ok()) return path;
  return WithRoom(&cache_, [&]() -> sys::Result<sys::UniqueFd> {
    auto answer = opener_->Open(path.value().get(), flags);
    // A message whose descriptor finds no room arrives without it.
    if (answer.ok() && !answer.value().valid()) return sys::Error{EMFILE, "recvmsg"};
    return answer;
  });
}

sys::Result<sys::UniqueFd> Table::OpenAsOurselves(Inode& inode, int flags) {
  const bool data = (flags & O_PATH) == 0;
  if (data && !S_ISREG(inode.type_)) {
    // Opening a fifo or a device acts on it.
    return sys::Error{S_ISDIR(inode.type_) ? EISDIR : S_ISLNK(inode.type_) ? ELOOP : ENXIO, "open"};
  }
  FdRef kept = Kept(inode);
  if (!kept) kept = cache_.Get(inode.nodeid_, FdKind::kPath);
  if (kept) return Reopen(kept.get(), flags);
  if (UsesHandle(inode)) {
    auto direct = OpenByHandle(inode, flags);
    if (direct.ok() || UsesHandle(inode)) return direct;
  }
  auto path = OpenByPlace(inode);
  if (!path.ok() || !data) return path;
  return Reopen(path.value().get(), flags);
}

// The descriptor that is kept for the inode as long as it is known: of a root or a pinned one.
FdRef Table::Kept(Inode& inode) {
  if (inode.HasFlag(Inode::kPermanent)) return FdRef(&inode == root_ ? project_fd_ : store_fd_);
  if (!inode.HasFlag(Inode::kPinned)) return {};
  std::lock_guard<std::mutex> lock(mutex_);
  return inode.has_extras_ && inode.HasFlag(Inode::kPinned) ? FdRef(extras_[inode.nodeid_].pin) : FdRef();
}

bool Table::UsesHandle(const Inode& inode) { return !inode.handle_.empty() && !inode.HasFlag(Inode::kHandleWrong); }

// ESTALE: the inode is gone for good, unless UsesHandle() has become false: then try its places.
sys::Result<sys::UniqueFd> Table::OpenByHandle(Inode& inode, int flags) {
  auto opened = WithRoom(&cache_, [&] { return inode.handle_.Open(mount_fd_.get(), flags); });
  if (!opened.ok()) {
    if (opened.error().number != ESTALE) return opened;
    // Another inode may get its number, even within the same tick of the birth time: that one is to get a slot of its
    // own.
    std::lock_guard<std::mutex> lock(mutex_);
    Unkey(inode);
    return opened;
  }
  if (inode.HasFlag(Inode::kHandleVerified)) return opened;
  // The handle was asked for by name: make sure once that the name did not change hands in between.
  auto key = KeyAt(opened.value().get(), "");
  if (!key.ok()) return key.error();
  inode.SetFlag(Is(inode, key.value()) ? Inode::kHandleVerified : Inode::kHandleWrong);
  if (!UsesHandle(inode)) return kStale;
  return opened;
}

// An O_PATH descriptor by any of the inode's places.
sys::Result<sys::UniqueFd> Table::OpenByPlace(Inode& inode) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestMove;
  uint64_t moves;
  do {
    if (inode.dead()) return kStale;
    moves = Moves();
    for (const Step& place : PlacesOf(inode)) {
      auto opened = OpenStep(place, inode);
      if (opened.ok() || !NotThere(opened.error().number)) return opened;
    }
  } while (MovedSince(moves, deadline));
  return kStale;
}

Table::Moving::Moving(Table& table) : table_(table) {
  std::lock_guard<std::mutex> lock(table_.moving_mutex_);
  table_.moves_under_way_++;
}

Table::Moving::~Moving() {
  std::lock_guard<std::mutex> lock(table_.moving_mutex_);
  table_.moves_under_way_--;
  table_.moves_done_++;
  table_.moved_.notify_all();
}

uint64_t Table::Moves() {
  std::lock_guard<std::mutex> lock(moving_mutex_);
  return moves_done_;
}

// Whether a move was under way at any time since `moves` was asked.
bool Table::MayHaveMoved(uint64_t moves) {
  std::lock_guard<std::mutex> lock(moving_mutex_);
  return moves_under_way_ > 0 || moves_done_ != moves;
}

// True: a move ended since `moves` was asked (waits for one under way), so that places asked before may have been old.
bool Table::MovedSince(uint64_t moves, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(moving_mutex_);
  if (moves_under_way_ > 0) moved_.wait_until(lock, deadline, [&] { return moves_done_ != moves; });
  return moves_done_ != moves && std::chrono::steady_clock::now() < deadline;
}

sys::Result<sys::UniqueFd> Table::OpenStep(const Step& step, Inode& inode) {
  if (!step.dir) {
    if (!store_fd_) return kStale;
    return OpenAt(store_fd_->get(), step.name.c_str(), inode);
  }
  auto dir_fd = WalkTo(*step.dir);
  if (!dir_fd.ok()) return dir_fd.error();
  return OpenAt(dir_fd.value().get(), step.name.c_str(), inode);
}

bool Table::IsAt(const Step& step, Inode& inode) {
  auto dir_fd = WalkTo(*step.dir);
  if (!dir_fd.ok()) return false;
  auto key = KeyAt(dir_fd.value().get(), step.name.c_str());
  return key.ok() && Is(inode, key.value());
}

sys::Result<sys::UniqueFd> Table::OpenAt(int dir_fd, const char* name, Inode& inode) {
  auto opened = WithRoom(&cache_, [&]() -> sys::Result<sys::UniqueFd> {
    sys::UniqueFd fd(openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return sys::LastError("openat");
    return fd;
  });
  if (!opened.ok()) return opened;
  auto key = KeyAt(opened.value().get(), "");
  if (!key.ok()) return key.error();
  if (!Is(inode, key.value())) return kStale;
  return opened;
}

// A directory without walking. ESTALE: it must be walked to.
sys::Result<FdRef> Table::Near(Inode& dir) {
  FdRef kept = Kept(dir);
  if (kept) return kept;
  kept = cache_.Get(dir.nodeid_, FdKind::kPath);
  if (kept) return kept;
  if (!UsesHandle(dir)) return kStale;
  auto opened = OpenByHandle(dir, O_PATH | O_NOFOLLOW);
  if (!opened.ok()) return opened.error();
  return cache_.Put(dir.nodeid_, FdKind::kPath, std::move(opened.value()));
}

// Up to the nearest directory that can be had, then down again. Not recursive: folders may be nested deeper than our
// stack.
sys::Result<FdRef> Table::WalkTo(Inode& dir) {
  std::vector<std::pair<Ref, std::string>> way;  // from below upwards: a directory and its name in the next one
  Ref at(dir);
  FdRef fd;
  for (;;) {
    auto near = Near(*at);
    if (near.ok()) {
      fd = std::move(near.value());
      break;
    }
    if (near.error().number != ESTALE || UsesHandle(*at)) return near.error();
    if (at->dead() || way.size() >= kMaxDepth) return kStale;
    Step place = NewestPlace(*at);
    if (!place.dir) return kStale;
    way.emplace_back(std::move(at), std::move(place.name));
    at = std::move(place.dir);
  }
  while (!way.empty()) {
    auto& [below, name] = way.back();
    auto opened = OpenAt(fd.get(), name.c_str(), *below);
    if (!opened.ok()) return opened.error();
    fd = cache_.Put(below->nodeid_, FdKind::kPath, std::move(opened.value()));
    way.pop_back();
  }
  return fd;
}

sys::Result<sys::UniqueFd> Table::Reopen(int fd, int flags) {
  return WithRoom(&cache_, [&]() -> sys::Result<sys::UniqueFd> {
    if ((flags & O_PATH) != 0) {
      sys::UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
      if (!copy.valid()) return sys::LastError("dup");
      return copy;
    }
    char name[16];
    snprintf(name, sizeof name, "%d", fd);
    sys::UniqueFd opened(openat(proc_fd_.get(), name, flags | O_CLOEXEC));
    if (!opened.valid()) return sys::LastError("open");
    return opened;
  });
}

}  // namespace inode
