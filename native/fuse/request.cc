#include "fuse/request.h"

namespace fuse {
namespace {

// The length of the string at the start of `bytes` with its NUL, 0 when it does not end.
size_t StringBytes(std::span<const std::byte> bytes) {
  const void* end = std::memchr(bytes.data(), 0, bytes.size());
  if (end == nullptr) return 0;
  return static_cast<size_t>(static_cast<const std::byte*>(end) - bytes.data()) + 1;
}

}  // namespace

bool Request::Parse(std::span<const std::byte> bytes, size_t arg_bytes, unsigned names, bool free_names) {
  if (bytes.size() < sizeof(header_)) return false;
  std::memcpy(&header_, bytes.data(), sizeof(header_));
  if (header_.len != bytes.size()) return false;
  bytes = bytes.subspan(sizeof(header_));
  if (bytes.size() < arg_bytes) return false;
  arg_ = bytes.first(arg_bytes);
  bytes = bytes.subspan(arg_bytes);
  if (names > 2) return false;
  for (unsigned i = 0; i < names; ++i) {
    if (bytes.empty()) return false;
    size_t length = StringBytes(bytes);
    if (length == 0) return false;
    names_[i] = reinterpret_cast<const char*>(bytes.data());
    if (!free_names && (length == 1 || std::strchr(names_[i], '/') != nullptr)) return false;
    bytes = bytes.subspan(length);
  }
  data_ = bytes;
  return true;
}

}  // namespace fuse
