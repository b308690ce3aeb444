// Reads a journal file frame by frame, damaged ones too: it stops at the first invalid frame and says what was dropped
// and why. Used by `dump` and by tests; the daemon has a reader of its own in TypeScript.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/format.h"
#include "sys/result.h"

namespace journal {

struct Frame {
  RecordType type;
  uint64_t seq;
  uint64_t offset;  // in the file
  std::string_view payload;
};

struct Contents {
  std::string bytes;  // the file; payloads point into it
  std::vector<Frame> frames;
  bool sealed = false;
  uint64_t end = 0;            // behind the last valid frame
  uint64_t dropped_bytes = 0;  // up to the last byte that is not zero; preallocated zeros are no loss
  std::string dropped_why;     // empty when nothing was dropped
};

// Reads the bytes only; `dirfd` as for openat.
sys::Result<Contents> ReadFile(int dirfd, const char* path);

// Finds the frames of contents->bytes. Call it where the contents stay: payloads point into them.
void Parse(Contents* contents);

}  // namespace journal
