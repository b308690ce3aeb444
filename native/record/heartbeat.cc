#include "record/heartbeat.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "record/clock.h"

namespace record {
namespace {

constexpr size_t kBytes = 4096;
constexpr uint32_t kXfsMagic = 0x58465342;

// A store through a mapping can't report an error: where the filesystem needs new space for a page that has space
// already (copy on write: btrfs, and whatever lies below overlayfs), a full disk would be a SIGBUS. These overwrite in
// place.
bool OverwritesInPlace(int fd) {
  struct statfs fs;
  if (fstatfs(fd, &fs) != 0) return false;
  const auto type = static_cast<uint32_t>(fs.f_type);
  return type == EXT4_SUPER_MAGIC || type == kXfsMagic || type == TMPFS_MAGIC;
}

}  // namespace

Heartbeat::~Heartbeat() {
  if (mapped_ != nullptr) munmap(mapped_, kBytes);
}

sys::Result<void> Heartbeat::Open(int store_fd) {
  fd_.Reset(openat(store_fd, "heartbeat", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd_.valid()) return sys::LastError("openat(heartbeat)");
  // Really written, so that the page has its block; what a former engine stored stays until the first beat.
  char page[kBytes] = {};
  const ssize_t had = pread(fd_.get(), page, kBytes, 0);
  if (had < 0) return sys::LastError("pread(heartbeat)");
  if (pwrite(fd_.get(), page, kBytes, 0) != static_cast<ssize_t>(kBytes)) return sys::LastError("pwrite(heartbeat)");
  if (OverwritesInPlace(fd_.get())) {
    void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (mapped != MAP_FAILED) mapped_ = static_cast<std::atomic<uint64_t>*>(mapped);
  }
  return {};
}

void Heartbeat::Beat() { BeatAt(NowNs()); }

void Heartbeat::BeatAt(int64_t now_ns) {
  const auto now = static_cast<uint64_t>(now_ns);
  if (mapped_ != nullptr) {
    mapped_->store(now, std::memory_order_relaxed);
    return;
  }
  // Best effort by nature: an older time only makes recovery more careful.
  if (pwrite(fd_.get(), &now, sizeof now, 0) < 0) return;
}

}  // namespace record
