#include "pack/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

namespace pack {
namespace {

// Full packs kept open until the next sync; one more and the oldest is synced at once.
constexpr size_t kMaxFull = 8;

sys::Result<void> WriteAll(int fd, const void* data, uint64_t size, uint64_t offset) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = pwrite(fd, bytes, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys::LastError("pwrite(pack)");
    if (n == 0) return sys::Error{EIO, "pwrite(pack)"};
    bytes += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<uint64_t>(n);
  }
  return {};
}

}  // namespace

sys::Result<std::shared_ptr<Writer::File>> Writer::Create() {
  auto file = std::make_shared<File>();
  // A number may be taken by an engine that was killed before anybody heard of its pack.
  do {
    file->number = numbers_->Take();
    char name[32];
    snprintf(name, sizeof name, "%08" PRIx64 ".pack", file->number);
    file->fd.Reset(openat(packs_fd_, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  } while (!file->fd.valid() && errno == EEXIST);
  if (!file->fd.valid()) return sys::LastError("openat(pack)");
  char header[journal::kPackHeaderBytes];
  memcpy(header, journal::kPackMagic, 4);
  memcpy(header + 4, &journal::kPackVersion, 4);
  memcpy(header + 8, &session_, 8);
  if (auto done = WriteAll(file->fd.get(), header, sizeof header, 0); !done.ok()) {
    char name[32];
    snprintf(name, sizeof name, "%08" PRIx64 ".pack", file->number);
    unlinkat(packs_fd_, name, 0);
    return done.error();
  }
  file->end = sizeof header;
  file->dirty = true;
  return file;
}

sys::Result<Writer::Place> Writer::Reserve(uint64_t length) {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr || (file_->end > journal::kPackHeaderBytes && file_->end + length > max_bytes_)) {
    auto next = Create();
    if (!next.ok()) return next.error();
    name_unsynced_ = true;
    if (file_ != nullptr) full_.push_back(std::move(file_));
    if (full_.size() > kMaxFull && fdatasync(full_.front()->fd.get()) == 0) full_.erase(full_.begin());
    file_ = std::move(next.value());
  }
  return Place{file_, file_->end.fetch_add(length), length};
}

sys::Result<void> Writer::Write(const Place& place, uint64_t at, const void* data, uint64_t size) {
  auto done = WriteAll(place.file->fd.get(), data, size, place.offset + at);
  place.file->dirty.store(true, std::memory_order_release);
  return done;
}

void Writer::GiveBack(const Place& place, uint64_t used) {
  uint64_t end = place.offset + place.length;
  place.file->end.compare_exchange_strong(end, place.offset + used);
}

sys::Result<void> Writer::Sync() {
  std::vector<std::shared_ptr<File>> files;
  bool name;
  {
    const std::lock_guard lock(mutex_);
    files = full_;
    if (file_ != nullptr) files.push_back(file_);
    name = std::exchange(name_unsynced_, false);
  }
  sys::Result<void> result;
  for (const auto& file : files) {
    if (!file->dirty.exchange(false, std::memory_order_acq_rel)) continue;
    if (fdatasync(file->fd.get()) == 0) continue;
    if (result.ok()) result = sys::LastError("fdatasync(pack)");
    file->dirty = true;
  }
  if (name && fsync(packs_fd_) != 0 && result.ok()) result = sys::LastError("fsync(packs)");
  const std::lock_guard lock(mutex_);
  if (!result.ok()) {
    name_unsynced_ = name_unsynced_ || name;
    return result;
  }
  std::erase_if(full_, [](const auto& file) { return !file->dirty.load(std::memory_order_acquire); });
  return {};
}

}  // namespace pack
