#include "pack/blobs.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <string>

namespace pack {
namespace {

std::string Name(uint64_t number) {
  char name[32];
  snprintf(name, sizeof name, "%016" PRIx64, number);
  return name;
}

// These say that the filesystem has no clones, or that file and store lie on two of them. Anything else (a swap file,
// no space, a file that may not be cloned) is about this file only.
bool SaysNever(int error) { return error == EOPNOTSUPP || error == ENOTTY || error == EXDEV || error == ENOSYS; }

}  // namespace

std::optional<Blobs::Clone> Blobs::Make(int fd, uint64_t dev) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = clones_.find(dev);
    if (known != clones_.end() && !known->second) return std::nullopt;
  }
  Clone clone;
  do {
    clone.number = numbers_->Take();
    clone.fd.Reset(
        openat(blobs_fd_, Name(clone.number).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  } while (!clone.fd.valid() && errno == EEXIST);
  if (!clone.fd.valid()) return std::nullopt;
  if (ioctl(clone.fd.get(), FICLONE, fd) != 0) {
    const bool never = SaysNever(errno);
    Remove(clone.number);
    if (never) {
      const std::lock_guard lock(mutex_);
      clones_.emplace(dev, false);
    }
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  clones_.insert_or_assign(dev, true);
  unsynced_.push_back(clone.number);
  return clone;
}

void Blobs::Remove(uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(unsynced_, number);
  }
  unlinkat(blobs_fd_, Name(number).c_str(), 0);
}

sys::Result<void> Blobs::Sync() {
  std::vector<uint64_t> numbers;
  {
    const std::lock_guard lock(mutex_);
    numbers.swap(unsynced_);
  }
  if (numbers.empty()) return {};
  sys::Result<void> result;
  for (uint64_t number : numbers) {
    // Opened again by name: a blob is never kept open, however many there are.
    const sys::UniqueFd fd(openat(blobs_fd_, Name(number).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.valid() && errno == ENOENT) continue;
    if ((!fd.valid() || fsync(fd.get()) != 0) && result.ok()) result = sys::LastError("fsync(blob)");
  }
  if (fsync(blobs_fd_) != 0 && result.ok()) result = sys::LastError("fsync(blobs)");
  if (!result.ok()) {
    const std::lock_guard lock(mutex_);
    unsynced_.insert(unsynced_.end(), numbers.begin(), numbers.end());
  }
  return result;
}

}  // namespace pack
