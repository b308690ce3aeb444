// Which chunks of a large file were captured in this span. A file that is captured chunk by chunk has a row here; its
// object lock guards the row's contents.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "record/subject.h"

namespace record {

// A set of chunk numbers: pages of bits, and everything from `tail_from` on (a truncate to nothing of a file of 10 TiB
// takes one number, not 160 million bits).
class ChunkSet {
 public:
  bool Has(uint64_t chunk) const;
  // The first captured / not captured chunk in [from, to), or `to`.
  uint64_t NextPresent(uint64_t from, uint64_t to) const;
  uint64_t NextMissing(uint64_t from, uint64_t to) const;
  void Add(uint64_t from, uint64_t to);
  void AddTail(uint64_t from);
  bool empty() const { return pages_.empty() && tail_from_ == UINT64_MAX; }

 private:
  static constexpr uint64_t kPageChunks = 512;
  using Page = std::array<uint64_t, kPageChunks / 64>;

  std::unordered_map<uint64_t, Page> pages_;
  uint64_t tail_from_ = UINT64_MAX;
};

struct ChunkRow {
  Stamp stamp = 0;
  uint64_t first_size = 0;  // at the first touch: what lies behind it was not there
  ChunkSet captured;
};

class ChunkTable {
 public:
  using Rows = std::unordered_map<ObjectId, std::shared_ptr<ChunkRow>>;

  // The object's row for this stamp; nullptr when its first touch is still to come.
  std::shared_ptr<ChunkRow> Find(ObjectId object, Stamp stamp);
  void Put(ObjectId object, std::shared_ptr<ChunkRow> row);
  // Empties the table; the caller frees what it gets.
  Rows Clear();

 private:
  std::mutex mutex_;
  Rows rows_;
};

}  // namespace record
