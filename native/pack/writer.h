// Appends captured bytes to pack files (layout: journal/FORMAT.md). Called from every worker thread: a place is
// reserved under the mutex, bytes are written outside it, so captures don't wait for each other's I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "journal/format.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace pack {

// One numbering for packs and blobs.
class Numbers {
 public:
  explicit Numbers(uint64_t next) : next_(next) {}
  uint64_t Take() { return next_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t next() const { return next_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> next_;
};

class Writer {
 public:
  // `packs_fd` is the folder; it stays the caller's.
  Writer(int packs_fd, uint64_t session, Numbers* numbers, uint64_t max_bytes = journal::kPackMaxBytes)
      : packs_fd_(packs_fd), session_(session), numbers_(numbers), max_bytes_(max_bytes) {}

  struct File {
    sys::UniqueFd fd;
    uint64_t number = 0;
    std::atomic<uint64_t> end{0};
    std::atomic<bool> dirty{false};
  };

  // A range of a pack that is the caller's to write.
  struct Place {
    std::shared_ptr<File> file;
    uint64_t offset = 0;
    uint64_t length = 0;
  };

  sys::Result<Place> Reserve(uint64_t length);
  // Writes at `at` within the place.
  sys::Result<void> Write(const Place& place, uint64_t at, const void* data, uint64_t size);
  // Only the first `used` bytes of the place were needed. The rest is used again when nothing was reserved behind it.
  void GiveBack(const Place& place, uint64_t used);

  sys::Result<void> Sync();

 private:
  sys::Result<std::shared_ptr<File>> Create();

  const int packs_fd_;
  const uint64_t session_;
  Numbers* const numbers_;
  const uint64_t max_bytes_;

  std::mutex mutex_;  // guards everything below
  std::shared_ptr<File> file_;
  std::vector<std::shared_ptr<File>> full_;  // earlier packs of this session that were not synced yet
  bool name_unsynced_ = false;
};

}  // namespace pack
