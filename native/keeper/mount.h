// Putting the mount over the folder and taking it away.
#pragma once

#include <string>

#include "keeper/failure.h"
#include "keeper/mount_table.h"
#include "sys/fd.h"

namespace keeper {

struct Mounted {
  sys::UniqueFd fuse_fd;
  std::string mountpoint;  // as the mount table spells it
  MountEntry entry;
};

// Mounts at `mountpoint` the project that `project_fd` is: as root with mount(2), else with fusermount3. When the
// mountpoint is the project's own path it must still be that folder. On failure nothing is mounted.
Failure Mount(int project_fd, const std::string& mountpoint, Mounted* mounted);

// Unmounts what is on top at `mountpoint`. May wait for the filesystem to write back, so it is called in a process that
// holds no /dev/fuse descriptor: else nothing would end the wait when the engine dies.
Failure Unmount(const std::string& mountpoint, bool lazy);

// Is that very mount still there?
bool IsMounted(const std::string& mountpoint, const MountEntry& entry);

}  // namespace keeper
