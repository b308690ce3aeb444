#include "record/chunk_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace record {

bool ChunkSet::Has(uint64_t chunk) const { return NextPresent(chunk, chunk + 1) == chunk; }

uint64_t ChunkSet::NextPresent(uint64_t from, uint64_t to) const {
  for (uint64_t at = from; at < to;) {
    if (at >= tail_from_) return at;
    const uint64_t page_end = (at / kPageChunks + 1) * kPageChunks;
    const auto page = pages_.find(at / kPageChunks);
    if (page == pages_.end()) {
      at = std::min({page_end, std::max(at + 1, tail_from_), to});
      continue;
    }
    const uint64_t bit = at % kPageChunks;
    const uint64_t word = page->second[bit / 64] >> (bit % 64);
    if (word != 0) return std::min({at + static_cast<uint64_t>(std::countr_zero(word)), tail_from_, to});
    at = std::min(at - bit % 64 + 64, std::max(at + 1, tail_from_));
  }
  return to;
}

uint64_t ChunkSet::NextMissing(uint64_t from, uint64_t to) const {
  for (uint64_t at = from; at < to;) {
    if (at >= tail_from_) return to;
    const auto page = pages_.find(at / kPageChunks);
    if (page == pages_.end()) return at;
    const uint64_t bit = at % kPageChunks;
    const uint64_t word = ~page->second[bit / 64] >> (bit % 64);
    if (word != 0) {
      at += static_cast<uint64_t>(std::countr_zero(word));
      return at >= tail_from_ ? to : std::min(at, to);
    }
    at = at - bit % 64 + 64;
  }
  return to;
}

void ChunkSet::Add(uint64_t from, uint64_t to) {
  for (uint64_t at = from; at < to; at++) {
    const uint64_t bit = at % kPageChunks;
    pages_[at / kPageChunks][bit / 64] |= uint64_t{1} << (bit % 64);
  }
}

void ChunkSet::AddTail(uint64_t from) {
  tail_from_ = std::min(tail_from_, from);
  std::erase_if(pages_, [&](const auto& page) { return page.first * kPageChunks >= tail_from_; });
}

std::shared_ptr<ChunkRow> ChunkTable::Find(ObjectId object, Stamp stamp) {
  const std::lock_guard lock(mutex_);
  const auto at = rows_.find(object);
  return at != rows_.end() && at->second->stamp == stamp ? at->second : nullptr;
}

void ChunkTable::Put(ObjectId object, std::shared_ptr<ChunkRow> row) {
  const std::lock_guard lock(mutex_);
  rows_.insert_or_assign(object, std::move(row));
}

ChunkTable::Rows ChunkTable::Clear() {
  const std::lock_guard lock(mutex_);
  return std::exchange(rows_, Rows());
}

}  // namespace record
