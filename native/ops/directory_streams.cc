#include "ops/directory_streams.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace ops {
namespace {

// The record that getdents64(2) writes.
struct RawEntry {
  uint64_t ino;
  int64_t next;
  unsigned short bytes;
  unsigned char type;
  char name[];
};

}  // namespace

sys::Result<void> DirectoryStream::Seek(uint64_t offset) {
  // Offset 0 is a rewind: it must see the directory as it is now, not a buffer from before.
  if (offset == offset_ && offset != 0) return {};
  if (lseek(fd_.get(), static_cast<off_t>(offset), SEEK_SET) < 0) return sys::LastError("lseek");
  offset_ = previous_offset_ = offset;
  at_ = previous_at_ = filled_ = 0;
  return {};
}

sys::Result<bool> DirectoryStream::Next(DirectoryEntry* entry) {
  if (at_ == filled_) {
    long n = syscall(SYS_getdents64, fd_.get(), buffer_, sizeof(buffer_));
    // ENOENT: the directory has been removed, and reads as empty.
    if (n < 0 && errno != ENOENT) return sys::LastError("getdents64");
    if (n <= 0) return false;
    filled_ = static_cast<size_t>(n);
    at_ = 0;
  }
  auto* raw = reinterpret_cast<RawEntry*>(buffer_ + at_);
  previous_at_ = at_;
  previous_offset_ = offset_;
  at_ += raw->bytes;
  offset_ = static_cast<uint64_t>(raw->next);
  *entry = {raw->ino, offset_, raw->type, raw->name};
  return true;
}

void DirectoryStream::Back() {
  at_ = previous_at_;
  offset_ = previous_offset_;
}

sys::Result<sys::UniqueFd> OpenForListing(int dirfd) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  sys::UniqueFd fd(openat(dirfd, ".", kFlags));
  if (!fd.valid() && errno == EACCES) {
    // "." is a name inside, which takes search permission; listing takes only read permission.
    fd.Reset(open(("/proc/self/fd/" + std::to_string(dirfd)).c_str(), kFlags));
  }
  if (!fd.valid()) return sys::LastError("open");
  return fd;
}

sys::Result<std::shared_ptr<DirectoryStream>> DirectoryStreams::OpenStream(inode::Inode& dir) {
  auto dirfd = inodes_.DirectoryFd(dir);
  if (!dirfd.ok()) return dirfd.error();
  auto fd = OpenForListing(dirfd.value().get());
  if (!fd.ok()) return fd.error();
  return std::make_shared<DirectoryStream>(std::move(fd.value()));
}

sys::Result<uint64_t> DirectoryStreams::Open(inode::Inode& dir) {
  auto stream = OpenStream(dir);
  if (!stream.ok()) return stream.error();
  std::lock_guard lock(mutex_);
  uint64_t handle = next_handle_++;
  open_.emplace(handle, std::move(stream.value()));
  return handle;
}

void DirectoryStreams::Close(uint64_t handle) {
  std::shared_ptr<DirectoryStream> last;
  std::lock_guard lock(mutex_);
  auto it = open_.find(handle);
  if (it == open_.end()) return;
  last = std::move(it->second);
  open_.erase(it);
}

std::shared_ptr<DirectoryStream> DirectoryStreams::Find(uint64_t handle) {
  std::lock_guard lock(mutex_);
  auto it = open_.find(handle);
  return it == open_.end() ? nullptr : it->second;
}

sys::Result<std::shared_ptr<DirectoryStream>> DirectoryStreams::Take(inode::Inode& dir, uint64_t offset) {
  {
    std::lock_guard lock(mutex_);
    for (auto it = cached_.begin(); it != cached_.end(); ++it) {
      if (it->nodeid != dir.nodeid() || it->stream->offset() != offset) continue;
      auto stream = std::move(it->stream);
      cached_.erase(it);
      return stream;
    }
  }
  return OpenStream(dir);
}

void DirectoryStreams::Keep(uint64_t nodeid, std::shared_ptr<DirectoryStream> stream) {
  std::shared_ptr<DirectoryStream> oldest;  // closed after the mutex is free
  std::lock_guard lock(mutex_);
  cached_.push_front({nodeid, std::move(stream)});
  if (cached_.size() > kMostCached) {
    oldest = std::move(cached_.back().stream);
    cached_.pop_back();
  }
}

}  // namespace ops
