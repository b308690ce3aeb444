// CRC-32C (Castagnoli, reflected, as in iSCSI): the checksum of journal frames.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hash {

// Continues `crc` (0 to begin) over `size` bytes. Uses the processor's CRC instruction where it has one.
uint32_t Crc32c(uint32_t crc, const void* data, size_t size);

// The table version, which every processor can run. Tests compare the two.
uint32_t Crc32cPortable(uint32_t crc, const void* data, size_t size);

}  // namespace hash
