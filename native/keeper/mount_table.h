// What is mounted where, from /proc/self/mountinfo. Reading it asks no filesystem anything, so it is safe while a FUSE
// filesystem does not answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace keeper {

struct MountEntry {
  uint64_t id = 0;
  uint32_t device_minor = 0;  // for FUSE: the number below /sys/fs/fuse/connections
  uint32_t device_major = 0;
  std::string mountpoint;
  std::string type;
};

// The filesystem type that both ways of mounting give.
constexpr std::string_view kMountType = "fuse.turnfs";

// The topmost mount at exactly this path.
std::optional<MountEntry> FindMount(const std::string& mountpoint);
// The same in a given text; for tests.
std::optional<MountEntry> FindMountIn(std::string_view table, const std::string& mountpoint);

}  // namespace keeper
