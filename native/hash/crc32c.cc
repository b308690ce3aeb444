#include "hash/crc32c.h"

#include <array>
#include <cstring>

namespace hash {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41 with its bits reversed

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// Table k gives the effect of a byte that is followed by k more bytes, so that eight bytes go in one step.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < tables.size(); k++) {
    for (size_t byte = 0; byte < 256; byte++) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t Crc32cHardware(uint32_t crc, const uint8_t* bytes, size_t size) {
  uint64_t state = ~crc;
  while (size >= 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    state = __builtin_ia32_crc32di(state, word);
    bytes += 8;
    size -= 8;
  }
  auto low = static_cast<uint32_t>(state);
  while (size-- > 0) low = __builtin_ia32_crc32qi(low, *bytes++);
  return ~low;
}

bool HaveHardware() { return __builtin_cpu_supports("sse4.2"); }
#else
uint32_t Crc32cHardware(uint32_t crc, const uint8_t* bytes, size_t size) { return Crc32cPortable(crc, bytes, size); }

bool HaveHardware() { return false; }
#endif

}  // namespace

uint32_t Crc32cPortable(uint32_t crc, const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  crc = ~crc;
  while (size >= 8) {
    const uint32_t low = crc ^ (bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^ kTables[5][(low >> 16) & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][bytes[4]] ^ kTables[2][bytes[5]] ^ kTables[1][bytes[6]] ^
          kTables[0][bytes[7]];
    bytes += 8;
    size -= 8;
  }
  while (size-- > 0) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes++) & 0xff];
  return ~crc;
}

uint32_t Crc32c(uint32_t crc, const void* data, size_t size) {
  static const bool hardware = HaveHardware();
  if (hardware) return Crc32cHardware(crc, static_cast<const uint8_t*>(data), size);
  return Crc32cPortable(crc, data, size);
}

}  // namespace hash
