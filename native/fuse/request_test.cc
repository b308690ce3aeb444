// Malformed messages must be refused, whole ones taken apart exactly.
#include "fuse/request.h"

#include <stdio.h>

#include <string>
#include <vector>

namespace {

int failures = 0;

void Check(bool ok, const char* what) {
  if (ok) return;
  ++failures;
  fprintf(stderr, "FAILED: %s\n", what);
}

std::vector<std::byte> Message(const std::string& body) {
  fuse_in_header header{};
  header.len = static_cast<uint32_t>(sizeof(header) + body.size());
  header.opcode = FUSE_LOOKUP;
  header.unique = 7;
  header.nodeid = 42;
  std::vector<std::byte> bytes(header.len);
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), body.data(), body.size());
  return bytes;
}

bool Parses(const std::vector<std::byte>& bytes, size_t arg, unsigned names, bool free_names = false) {
  fuse::Request request;
  return request.Parse(bytes, arg, names, free_names);
}

}  // namespace

int main() {
  using std::string;
  fuse::Request request;
  auto whole = Message(string("\x01\x02\x03\x04\x05\x06\x07\x08", 8) + string("old\0new\0rest", 12));
  Check(request.Parse(whole, 8, 2, false), "a whole message parses");
  Check(request.nodeid() == 42, "nodeid");
  Check(request.arg<uint64_t>() == 0x0807060504030201u, "argument, little-endian");
  Check(string(request.name(0)) == "old" && string(request.name(1)) == "new", "both names");
  Check(request.data().size() == 4, "data after the names");

  for (size_t cut = 0; cut < whole.size() - 4; ++cut) {
    std::vector<std::byte> shorter(whole.begin(), whole.begin() + static_cast<long>(cut));
    Check(!Parses(shorter, 8, 2), "a message shorter than its header says is refused");
    if (cut < sizeof(fuse_in_header)) continue;
    uint32_t length = static_cast<uint32_t>(cut);
    std::memcpy(shorter.data(), &length, sizeof(length));
    Check(!Parses(shorter, 8, 2), "a message cut in its argument or names is refused");
  }
  Check(!Parses(Message(string("a/b\0", 4)), 0, 1), "a slash in a name is refused");
  Check(Parses(Message(string("a/b\0", 4)), 0, 1, true), "a slash in a symlink's target is fine");
  Check(!Parses(Message(string("\0", 1)), 0, 1), "an empty name is refused");
  Check(!Parses(Message("open-ended"), 0, 1), "a name without an end is refused");
  Check(!Parses(Message(""), 0, 1), "a missing name is refused");
  Check(!Parses(Message("abc"), 4, 0), "a short argument is refused");
  return failures == 0 ? 0 : 1;
}
