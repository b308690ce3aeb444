// What every handler works with; one per mount, shared by the worker threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "fuse/request.h"
#include "gate/gate.h"
#include "inode/table.h"
#include "session/truncate_watch.h"

namespace ops {

class DirectoryStreams;

struct Context {
  inode::Table& inodes;
  gate::Gate& gate;
  DirectoryStreams& streams;
  session::TruncateWatch& truncates;
  // Where cookies of READDIR are stable across opens (ext4, xfs, btrfs): OPENDIR is answered ENOSYS and never asked
  // again.
  bool stateless_readdir = false;
  std::atomic<bool> short_timeouts{false};  // 1 s instead of a day: somebody stands behind the mount
};

}  // namespace ops
