// Negotiation at INIT. Feature bits decide, never the kernel's version.
#pragma once

#include <linux/fuse.h>

#include <span>

namespace fuse {

constexpr unsigned kMaxWrite = 1u << 20;

// The answer to the kernel's INIT; nullptr on success, else a sentence why this kernel can't be served.
const char* Negotiate(const fuse_init_in& in, fuse_init_out* out);

}  // namespace fuse
