#include "journal/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "hash/crc32c.h"
#include "sys/fd.h"

namespace journal {
namespace {

template <typename T>
T Load(const char* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

// Why the bytes at `offset` are no frame; nullptr: a frame, its size in *size; "" : the orderly end of the records.
const char* CheckFrame(std::string_view bytes, uint64_t offset, uint64_t previous_seq, bool first, uint64_t* size) {
  const std::string_view left = bytes.substr(offset);
  if (left.find_first_not_of('\0') == std::string_view::npos) return "";
  if (left.size() < kFrameHeaderBytes) return "the frame's header is cut short";
  const auto length = Load<uint32_t>(left.data() + 4);
  if (length > kMaxPayloadBytes) return "the frame's length is impossible";
  if (left.size() - kFrameHeaderBytes < length) return "the frame is cut short";
  *size = kFrameHeaderBytes + length;
  if (hash::Crc32c(0, left.data() + 4, *size - 4) != Load<uint32_t>(left.data())) return "the checksum is wrong";
  if (!first && Load<uint64_t>(left.data() + 8) != previous_seq + 1) return "the sequence number does not follow";
  if (first && Load<uint16_t>(left.data() + 16) != static_cast<uint16_t>(RecordType::kFileHeader)) {
    return "the file does not begin with a header";
  }
  return nullptr;
}

}  // namespace

void Parse(Contents* contents) {
  const std::string_view bytes = contents->bytes;
  uint64_t offset = 0;
  uint64_t seq = 0;
  const char* why = "";
  while (offset < bytes.size() && !contents->sealed) {
    uint64_t size = 0;
    why = CheckFrame(bytes, offset, seq, contents->frames.empty(), &size);
    if (why != nullptr) break;
    Frame frame;
    frame.type = static_cast<RecordType>(Load<uint16_t>(bytes.data() + offset + 16));
    frame.seq = seq = Load<uint64_t>(bytes.data() + offset + 8);
    frame.offset = offset;
    frame.payload = bytes.substr(offset + kFrameHeaderBytes, size - kFrameHeaderBytes);
    contents->frames.push_back(frame);
    contents->sealed = frame.type == RecordType::kSeal;
    offset += size;
  }
  contents->end = offset;
  const size_t last = bytes.find_last_not_of('\0');
  if (last != std::string_view::npos && last >= offset) {
    contents->dropped_bytes = last + 1 - offset;
    contents->dropped_why = contents->sealed ? "there are bytes behind the seal" : why;
  }
}

sys::Result<Contents> ReadFile(int dirfd, const char* path) {
  const sys::UniqueFd fd(openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return sys::LastError("openat");
  Contents contents;
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return sys::LastError("fstat");
  contents.bytes.resize(static_cast<size_t>(st.st_size));
  size_t have = 0;
  while (have < contents.bytes.size()) {
    const ssize_t got =
        pread(fd.get(), contents.bytes.data() + have, contents.bytes.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys::LastError("pread");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  contents.bytes.resize(have);
  return contents;
}

}  // namespace journal
