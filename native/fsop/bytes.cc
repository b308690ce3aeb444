// Contents of regular files: reading, comparing, copying, holes.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "fsop/verbs.h"
#include "hash/xxh64.h"

namespace fsop {
namespace {

constexpr size_t kPieceBytes = 1u << 20;
constexpr uint64_t kMaxOffset = INT64_MAX;

struct Range {
  uint64_t offset;
  uint64_t length;
};

sys::Result<Range> ParseRange(const control::Request& request, const char* offset_key = "offset") {
  auto offset = request.Unsigned(offset_key, kMaxOffset);
  if (!offset.ok()) return offset.error();
  auto length = request.Unsigned("length", kMaxOffset - offset.value());
  if (!length.ok()) return length.error();
  return Range{offset.value(), length.value()};
}

// Reads until `size` bytes are there or the file ends.
sys::Result<size_t> ReadFully(int fd, char* to, size_t size, uint64_t offset) {
  size_t done = 0;
  while (done < size) {
    ssize_t got = pread(fd, to + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys::LastError("pread");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

sys::Result<void> WriteFully(int fd, const char* from, size_t size, uint64_t offset) {
  for (size_t done = 0; done < size;) {
    ssize_t put = pwrite(fd, from + done, size - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return sys::LastError("pwrite");
    done += static_cast<size_t>(put);
  }
  return {};
}

// By reading and writing, for filesystems between which the kernel does not copy.
sys::Result<void> CopyPieces(int from, uint64_t from_offset, int to, Range range) {
  auto buffer = std::make_unique<char[]>(kPieceBytes);
  while (range.length > 0) {
    size_t piece = static_cast<size_t>(std::min<uint64_t>(range.length, kPieceBytes));
    auto got = ReadFully(from, buffer.get(), piece, from_offset);
    if (!got.ok()) return got.error();
    if (got.value() < piece) return sys::Error{EIO, "copy-source-too-short"};
    if (auto r = WriteFully(to, buffer.get(), piece, range.offset); !r.ok()) return r;
    from_offset += piece;
    range.offset += piece;
    range.length -= piece;
  }
  return {};
}

sys::Result<void> CopyRange(int from, uint64_t from_offset, int to, Range range) {
  while (range.length > 0) {
    size_t piece = static_cast<size_t>(std::min<uint64_t>(range.length, kPieceBytes));
    off64_t source = static_cast<off64_t>(from_offset);
    off64_t target = static_cast<off64_t>(range.offset);
    ssize_t copied = copy_file_range(from, &source, to, &target, piece, 0);
    if (copied < 0 && errno == EINTR) continue;
    // EXDEV: other filesystems. EINVAL: overlapping ranges of one file, or a kernel that can't with this pair.
    // EPERM, EOPNOTSUPP, ENOSYS: the filesystem doesn't offer it. A 0 may mean the end, or a filesystem that pretends.
    bool other_way =
        copied == 0 ||
        (copied < 0 && (errno == EXDEV || errno == EINVAL || errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS));
    if (other_way) return CopyPieces(from, from_offset, to, range);
    if (copied < 0) return sys::LastError("copy_file_range");
    from_offset += static_cast<uint64_t>(copied);
    range.offset += static_cast<uint64_t>(copied);
    range.length -= static_cast<uint64_t>(copied);
  }
  return {};
}

// Where no hole can be made: zeros, so that at least the bytes are right.
sys::Result<void> WriteZeros(int fd, Range range) {
  struct stat st;
  if (fstat(fd, &st) != 0) return sys::LastError("fstat");
  uint64_t end = std::min<uint64_t>(range.offset + range.length, static_cast<uint64_t>(st.st_size));
  auto zeros = std::make_unique<char[]>(kPieceBytes);  // value-initialised
  for (uint64_t at = range.offset; at < end;) {
    size_t piece = static_cast<size_t>(std::min<uint64_t>(end - at, kPieceBytes));
    if (auto r = WriteFully(fd, zeros.get(), piece, at); !r.ok()) return r;
    at += piece;
  }
  return {};
}

}  // namespace

sys::Result<void> Read(Roots& roots, const control::Request& request, control::Answer* answer) {
  auto range = ParseRange(request);
  if (!range.ok()) return range.error();
  if (range.value().length > kPieceBytes) return sys::Error{EINVAL, "length"};
  auto file = OpenFile(roots, request, O_RDONLY);
  if (!file.ok()) return file.error();
  std::string bytes(static_cast<size_t>(range.value().length), '\0');
  auto got = ReadFully(file.value().get(), bytes.data(), bytes.size(), range.value().offset);
  if (!got.ok()) return got.error();
  answer->Add("bytes", std::string_view(bytes).substr(0, got.value()));
  return {};
}

sys::Result<void> Hash(Roots& roots, const control::Request& request, control::Answer* answer) {
  auto range = ParseRange(request);
  if (!range.ok()) return range.error();
  auto file = OpenFile(roots, request, O_RDONLY);
  if (!file.ok()) return file.error();
  auto buffer = std::make_unique<char[]>(kPieceBytes);
  hash::Xxh64 hasher;
  uint64_t done = 0;
  while (done < range.value().length) {
    size_t piece = static_cast<size_t>(std::min<uint64_t>(range.value().length - done, kPieceBytes));
    auto got = ReadFully(file.value().get(), buffer.get(), piece, range.value().offset + done);
    if (!got.ok()) return got.error();
    hasher.Update(buffer.get(), got.value());
    done += got.value();
    if (got.value() < piece) break;
  }
  char digest[17];
  snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(hasher.Digest()));
  answer->Add("xxh64", digest);
  answer->AddUnsigned("read", done);
  return {};
}

sys::Result<void> Equal(Roots& roots, const control::Request& request, control::Answer* answer) {
  auto left_range = ParseRange(request);
  if (!left_range.ok()) return left_range.error();
  auto right_range = ParseRange(request, "to_offset");
  if (!right_range.ok()) return right_range.error();
  auto left = OpenFile(roots, request, O_RDONLY);
  if (!left.ok()) return left.error();
  auto right = OpenFile(roots, request, O_RDONLY, "to_root", "to");
  if (!right.ok()) return right.error();
  auto buffer = std::make_unique<char[]>(2 * kPieceBytes);
  char* left_bytes = buffer.get();
  char* right_bytes = left_bytes + kPieceBytes;
  bool equal = true;
  for (uint64_t done = 0; equal && done < left_range.value().length; done += kPieceBytes) {
    size_t piece = static_cast<size_t>(std::min<uint64_t>(left_range.value().length - done, kPieceBytes));
    auto left_got = ReadFully(left.value().get(), left_bytes, piece, left_range.value().offset + done);
    if (!left_got.ok()) return left_got.error();
    auto right_got = ReadFully(right.value().get(), right_bytes, piece, right_range.value().offset + done);
    if (!right_got.ok()) return right_got.error();
    // Both ranges must be there in full.
    equal = left_got.value() == piece && right_got.value() == piece && memcmp(left_bytes, right_bytes, piece) == 0;
  }
  answer->AddUnsigned("equal", equal ? 1 : 0);
  return {};
}

sys::Result<void> Copy(Roots& roots, const control::Request& request, control::Answer*) {
  auto to_range = ParseRange(request);
  if (!to_range.ok()) return to_range.error();
  auto from_range = ParseRange(request, "from_offset");
  if (!from_range.ok()) return from_range.error();
  auto from = OpenFile(roots, request, O_RDONLY, "from_root", "from");
  if (!from.ok()) return from.error();
  auto to = OpenFile(roots, request, O_WRONLY);
  if (!to.ok()) return to.error();
  return CopyRange(from.value().get(), from_range.value().offset, to.value().get(), to_range.value());
}

sys::Result<void> Punch(Roots& roots, const control::Request& request, control::Answer*) {
  auto range = ParseRange(request);
  if (!range.ok()) return range.error();
  if (range.value().length == 0) return {};
  auto file = OpenFile(roots, request, O_WRONLY);
  if (!file.ok()) return file.error();
  int fd = file.value().get();
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.value().offset),
                static_cast<off_t>(range.value().length)) == 0) {
    return {};
  }
  if (errno == EOPNOTSUPP || errno == ENOSYS) return WriteZeros(fd, range.value());
  return sys::LastError("fallocate");
}

sys::Result<void> Truncate(Roots& roots, const control::Request& request, control::Answer*) {
  auto size = request.Unsigned("size", kMaxOffset);
  if (!size.ok()) return size.error();
  auto file = OpenFile(roots, request, O_WRONLY);
  if (!file.ok()) return file.error();
  if (ftruncate(file.value().get(), static_cast<off_t>(size.value())) != 0) return sys::LastError("ftruncate");
  return {};
}

}  // namespace fsop
