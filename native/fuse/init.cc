#include "fuse/init.h"

// Newer than some systems' <linux/fuse.h>.
#ifndef FUSE_INIT_EXT
#define FUSE_INIT_EXT (1 << 30)
#endif

namespace fuse {
namespace {

// Protocol 7.34 is Linux 5.15's.
constexpr uint32_t kOldestMinor = 34;

// Without these the promises can't be kept.
constexpr uint64_t kNeeded = FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_PARALLEL_DIROPS | FUSE_DONT_MASK |
                             FUSE_NO_OPEN_SUPPORT | FUSE_POSIX_ACL | FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT;

// These make it faster. Not asked for, on purpose:
//  ATOMIC_O_TRUNC: with messageless opens O_TRUNC must come as SETATTR, or it would not come at all.
//  WRITEBACK_CACHE: every write must reach the engine before it reaches the project.
//  AUTO_INVAL_DATA: a changed mtime would drop cached pages, though all changes come through the mount.
//  POSIX_LOCKS, FLOCK_LOCKS: the kernel keeps locks of one mount itself.
constexpr uint64_t kWanted = FUSE_ASYNC_READ | FUSE_DO_READDIRPLUS | FUSE_NO_OPENDIR_SUPPORT | FUSE_CACHE_SYMLINKS |
                             FUSE_ASYNC_DIO | FUSE_INIT_EXT;

}  // namespace

const char* Negotiate(const fuse_init_in& in, fuse_init_out* out) {
  *out = {};
  out->major = FUSE_KERNEL_VERSION;
  // A newer major than ours: the kernel sees our answer and asks again in it.
  if (in.major > FUSE_KERNEL_VERSION) return nullptr;
  if (in.major < FUSE_KERNEL_VERSION || in.minor < kOldestMinor)
    return "this kernel's FUSE is too old; turnfs needs Linux 5.15 or newer";
  uint64_t offered = in.flags;
  if (offered & FUSE_INIT_EXT) offered |= uint64_t{in.flags2} << 32;
  if ((offered & kNeeded) != kNeeded) return "this kernel's FUSE lacks a feature that turnfs needs";
  uint64_t agreed = offered & (kNeeded | kWanted);
  out->minor = in.minor < FUSE_KERNEL_MINOR_VERSION ? in.minor : FUSE_KERNEL_MINOR_VERSION;
  out->max_readahead = in.max_readahead;
  out->flags = static_cast<uint32_t>(agreed);
  out->flags2 = static_cast<uint32_t>(agreed >> 32);
  out->max_background = 64;
  out->congestion_threshold = 48;
  out->max_write = kMaxWrite;
  out->max_pages = kMaxWrite / 4096;
  out->time_gran = 1;
  return nullptr;
}

}  // namespace fuse
