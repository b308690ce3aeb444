// Copies bytes of a project file into the store and describes where they went. Holes are looked up and stay holes.
// The file may be changed behind the mount meanwhile: extents describe what was really read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "journal/records.h"
#include "pack/blobs.h"
#include "pack/writer.h"
#include "sys/result.h"

namespace record {

class Preimage {
 public:
  struct Bytes {
    std::vector<journal::Extent> extents;  // in order of offsets, without gaps
    uint64_t end = 0;                      // what was read ends here
    uint64_t stored = 0;                   // bytes that were copied
  };

  Preimage(pack::Writer* packs, pack::Blobs* blobs) : packs_(packs), blobs_(blobs) {}

  // Bytes [begin, end) of `fd`, less when the file ends before. Adds to *out.
  sys::Result<void> Copy(int fd, uint64_t begin, uint64_t end, Bytes* out);
  // The whole file as a reflink; nothing when that can't be had.
  std::optional<Bytes> Clone(int fd, uint64_t dev);

 private:
  sys::Result<bool> CopyData(int fd, uint64_t begin, uint64_t end, Bytes* out);

  pack::Writer* const packs_;
  pack::Blobs* const blobs_;
};

}  // namespace record
