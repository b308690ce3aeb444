// A row per opcode: how its message is laid out, who handles it and what it touches. An opcode without a row is refused
// (ENOSYS) and logged once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fuse/request.h"

namespace ops {

struct Context;

// 0, or the errno for the caller (> 0).
using Handler = int(Context&, const fuse::Request&, fuse::Reply&);

enum class Touch : uint8_t { kReads, kEntry, kObjectBytes, kObjectAttrs, kEntryAndBytes, kRefused };

struct Row {
  uint32_t opcode;
  const char* name;  // as in <linux/fuse.h> without FUSE_
  size_t arg_bytes;  // fixed argument after the header (the smallest that any kernel ≥ 5.15 sends)
  uint8_t names;     // NUL-terminated names after it
  bool free_names;   // names may contain '/' (a symlink's target) or be xattr names
  Touch touch;
  Handler& handler;  // a reference: no row without one
};

const Row* FindRow(uint32_t opcode);  // nullptr: none

}  // namespace ops
