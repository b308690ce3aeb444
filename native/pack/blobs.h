// Whole captured files, one each, as reflinks: `blobs/<number>`. A clone costs the same for 1 MiB and for 1 TiB.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "pack/writer.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace pack {

class Blobs {
 public:
  Blobs(int blobs_fd, Numbers* numbers) : blobs_fd_(blobs_fd), numbers_(numbers) {}

  struct Clone {
    uint64_t number = 0;
    sys::UniqueFd fd;  // the clone, for looking at its extents
  };

  // Clones the file open at `fd`, which lies on filesystem `dev`. Nothing: that filesystem can't (asked once per
  // filesystem), or not this file; take another way.
  std::optional<Clone> Make(int fd, uint64_t dev);
  // The clone is not needed after all.
  void Remove(uint64_t number);

  sys::Result<void> Sync();

 private:
  const int blobs_fd_;
  Numbers* const numbers_;

  std::mutex mutex_;                 // guards everything below
  std::map<uint64_t, bool> clones_;  // by filesystem; absent: not asked yet
  std::vector<uint64_t> unsynced_;
};

}  // namespace pack
