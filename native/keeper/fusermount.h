// The set-uid helper that mounts and unmounts for ordinary users. Waits for it; for single-threaded processes only.
#pragma once

#include <string>
#include <vector>

#include "keeper/failure.h"
#include "sys/fd.h"

namespace keeper {

// Mounts and returns the /dev/fuse descriptor that the helper made. `options` as after its -o.
Failure FusermountMount(const std::string& mountpoint, const std::string& options, sys::UniqueFd* fuse_fd);
Failure FusermountUnmount(const std::string& mountpoint, bool lazy);

}  // namespace keeper
