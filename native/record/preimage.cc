#include "record/preimage.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "hash/xxh64.h"

namespace record {
namespace {

using journal::Extent;
using journal::ExtentKind;

constexpr uint64_t kBufferBytes = 1u << 20;
// One extent has one hash and lies in one pack.
constexpr uint64_t kMaxExtentBytes = 64u << 20;
// Of a clone with more pieces than this the holes are not listed: the blob has them itself.
constexpr size_t kMaxCloneExtents = 10000;

void AddHole(uint64_t begin, uint64_t end, Preimage::Bytes* out) {
  if (begin >= end) return;
  Extent hole;
  hole.offset = begin;
  hole.length = end - begin;
  out->extents.push_back(hole);
  out->end = end;
}

// Reads until `size` bytes are there or the file ends.
sys::Result<uint64_t> ReadFully(int fd, char* to, uint64_t size, uint64_t offset) {
  uint64_t have = 0;
  while (have < size) {
    const ssize_t n = pread(fd, to + have, size - have, static_cast<off_t>(offset + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys::LastError("pread(project)");
    if (n == 0) break;
    have += static_cast<uint64_t>(n);
  }
  return have;
}

// Calls data(begin, end) and hole(begin, end) for the pieces of [begin, end). A filesystem that doesn't know holes has
// data everywhere. `data` returns false to stop.
template <typename Data, typename Hole>
sys::Result<void> WalkPieces(int fd, uint64_t begin, uint64_t end, Data data, Hole hole) {
  uint64_t at = begin;
  while (at < end) {
    const off_t data_begin = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (data_begin < 0 && errno == ENXIO) {
      // No more data before the file's end, which may have moved.
      const off_t size = lseek(fd, 0, SEEK_END);
      if (size < 0) return sys::LastError("lseek(SEEK_END)");
      hole(at, std::min(end, static_cast<uint64_t>(size)));
      return {};
    }
    uint64_t piece_begin = at, piece_end = end;
    if (data_begin < 0) {
      if (errno != EINVAL && errno != EOPNOTSUPP) return sys::LastError("lseek(SEEK_DATA)");
    } else {
      piece_begin = static_cast<uint64_t>(data_begin);
      const off_t data_end = piece_begin < end ? lseek(fd, data_begin, SEEK_HOLE) : data_begin;
      // ENXIO: cut off since; what is still there is read as data.
      if (data_end < 0 && errno != ENXIO) return sys::LastError("lseek(SEEK_HOLE)");
      if (data_end >= 0) piece_end = std::min(end, static_cast<uint64_t>(data_end));
    }
    hole(at, std::min(piece_begin, end));
    if (piece_begin >= end) return {};
    sys::Result<bool> more = data(piece_begin, piece_end);
    if (!more.ok()) return more.error();
    if (!more.value()) return {};
    at = piece_end;
  }
  return {};
}

}  // namespace

// False: the file ended before `end`.
sys::Result<bool> Preimage::CopyData(int fd, uint64_t begin, uint64_t end, Bytes* out) {
  thread_local std::vector<char> buffer;
  for (uint64_t at = begin; at < end;) {
    const uint64_t want = std::min(end - at, kMaxExtentBytes);
    if (buffer.size() < std::min(want, kBufferBytes)) buffer.resize(std::min(want, kBufferBytes));
    // The first piece is read before the place is reserved: for a small file its length is then known.
    auto first = ReadFully(fd, buffer.data(), std::min(want, kBufferBytes), at);
    if (!first.ok()) return first.error();
    uint64_t have = first.value();
    if (have == 0) return false;
    auto place = packs_->Reserve(want > kBufferBytes && have == kBufferBytes ? want : have);
    if (!place.ok()) return place.error();
    hash::Xxh64 hash;
    uint64_t done = 0;
    while (true) {
      hash.Update(buffer.data(), have);
      if (auto written = packs_->Write(place.value(), done, buffer.data(), have); !written.ok()) {
        packs_->GiveBack(place.value(), 0);
        return written.error();
      }
      done += have;
      if (done >= place.value().length || have < kBufferBytes) break;
      auto next = ReadFully(fd, buffer.data(), std::min(want - done, kBufferBytes), at + done);
      if (!next.ok()) {
        packs_->GiveBack(place.value(), 0);
        return next.error();
      }
      have = next.value();
      if (have == 0) break;
    }
    if (done < place.value().length) packs_->GiveBack(place.value(), done);
    Extent extent;
    extent.offset = at;
    extent.length = done;
    extent.kind = ExtentKind::kPack;
    extent.file = place.value().file->number;
    extent.file_offset = place.value().offset;
    extent.xxh64 = hash.Digest();
    out->extents.push_back(extent);
    out->end = at + done;
    out->stored += done;
    at += done;
    if (done < want) return false;
  }
  return true;
}

sys::Result<void> Preimage::Copy(int fd, uint64_t begin, uint64_t end, Bytes* out) {
  out->end = std::max(out->end, begin);
  return WalkPieces(
      fd, begin, end, [&](uint64_t from, uint64_t to) { return CopyData(fd, from, to, out); },
      [&](uint64_t from, uint64_t to) { AddHole(from, to, out); });
}

std::optional<Preimage::Bytes> Preimage::Clone(int fd, uint64_t dev) {
  auto clone = blobs_->Make(fd, dev);
  if (!clone) return std::nullopt;
  // The clone's own extents: the file itself may go on changing.
  struct stat st;
  if (fstat(clone->fd.get(), &st) != 0) {
    blobs_->Remove(clone->number);
    return std::nullopt;
  }
  const auto size = static_cast<uint64_t>(st.st_size);
  Bytes out;
  auto add = [&](uint64_t from, uint64_t to) {
    Extent extent;
    extent.offset = extent.file_offset = from;
    extent.length = to - from;
    extent.kind = ExtentKind::kBlob;
    extent.file = clone->number;
    out.extents.push_back(extent);
    out.end = to;
  };
  auto walked = WalkPieces(
      clone->fd.get(), 0, size,
      [&](uint64_t from, uint64_t to) -> sys::Result<bool> {
        add(from, to);
        return out.extents.size() <= kMaxCloneExtents;
      },
      [&](uint64_t from, uint64_t to) { AddHole(from, to, &out); });
  if (!walked.ok() || out.extents.size() > kMaxCloneExtents) {
    out.extents.clear();
    if (size > 0) add(0, size);
  }
  out.end = size;
  return out;
}

}  // namespace record
