// Both hashes against published values and against the JavaScript side's library.
#include <string>
#include <vector>

#include "control/check.h"
#include "hash/crc32c.h"
#include "hash/xxh64.h"

namespace {

uint32_t Crc(const std::string& bytes) {
  const uint32_t fast = hash::Crc32c(0, bytes.data(), bytes.size());
  CHECK(fast == hash::Crc32cPortable(0, bytes.data(), bytes.size()));
  return fast;
}

// From RFC 3720, B.4, and the usual check value.
void ChecksumsAreCastagnolis() {
  std::string up, down;
  for (int i = 0; i < 32; i++) up += static_cast<char>(i);
  for (int i = 31; i >= 0; i--) down += static_cast<char>(i);
  CHECK(Crc("") == 0);
  CHECK(Crc("123456789") == 0xe3069283);
  CHECK(Crc(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(Crc(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(Crc(up) == 0x46dd794e);
  CHECK(Crc(down) == 0x113fdb5c);
}

void ChecksumsGoOnWhereTheyStopped() {
  std::string bytes;
  for (int i = 0; i < 1000; i++) bytes += static_cast<char>(i * 7);
  const uint32_t whole = Crc(bytes);
  for (size_t cut = 0; cut <= bytes.size(); cut += 13) {
    CHECK(hash::Crc32c(hash::Crc32c(0, bytes.data(), cut), bytes.data() + cut, bytes.size() - cut) == whole);
    CHECK(hash::Crc32cPortable(hash::Crc32cPortable(0, bytes.data(), cut), bytes.data() + cut, bytes.size() - cut) ==
          whole);
  }
}

// xxhash-wasm 1.1, h64Raw of bytes (i * 131 + 7) & 255.
void ContentsHaveTheAddressesThatTheDaemonComputes() {
  struct Vector {
    size_t size;
    uint64_t seed0, seeded;
  };
  const Vector vectors[] = {
      {0, 0xef46db3751d8e999, 0xac75fda2929b17ef},     {1, 0xa96c7f0ce858bbb7, 0x84e535b36672440d},
      {3, 0xbed43740ee6332bb, 0x00b77b485431ce5d},     {4, 0xfa212ae44b3bb23d, 0x60492c4bfcb70cac},
      {7, 0x2744460dd675d2c0, 0xcdf83b729545b016},     {8, 0x994b676b71ce94dd, 0xf424edebfea8d23f},
      {14, 0x574269377227d80a, 0x3feedf322f169692},    {31, 0x6711d55e306b5d8f, 0xfa1259cc8b20eb58},
      {32, 0x07f7b8e3bc5d6e25, 0x920f3e10a5db09c6},    {33, 0x09f85eeb4e1cbe9f, 0x3d805e8712cb4890},
      {63, 0xb7c9968c066cb6a5, 0x184bc5097530bb9a},    {64, 0x50d4159a0411632e, 0x94667e10d68b3991},
      {100, 0x9ddada11d3dc2d8f, 0x5766be6782b96389},   {1000, 0x0bf0bdbcc82eb373, 0xb43e358553049780},
      {65537, 0x66b3d0bd2aa2acfa, 0xe6c7f1600ef2a85e},
  };
  for (const Vector& vector : vectors) {
    std::vector<unsigned char> bytes(vector.size);
    for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<unsigned char>(i * 131 + 7);
    CHECK(hash::XxHash64(bytes.data(), bytes.size()) == vector.seed0);
    CHECK(hash::XxHash64(bytes.data(), bytes.size(), 2654435761u) == vector.seeded);
    for (size_t piece : {1, 5, 31, 32, 33, 4096}) {
      hash::Xxh64 state;
      for (size_t at = 0; at < bytes.size(); at += piece) {
        state.Update(bytes.data() + at, std::min(piece, bytes.size() - at));
      }
      CHECK(state.Digest() == vector.seed0);
    }
  }
}

}  // namespace

int main() {
  ChecksumsAreCastagnolis();
  ChecksumsGoOnWhereTheyStopped();
  ContentsHaveTheAddressesThatTheDaemonComputes();
  return check::Finish("hash/hash_test");
}
