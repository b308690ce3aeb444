// The clocks the recorder uses.
#pragma once

#include <time.h>

#include <cstdint>

namespace record {

inline int64_t ReadClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// What records carry: comparable with the times of files.
inline int64_t NowNs() { return ReadClockNs(CLOCK_REALTIME); }

// For waiting and for ageing caches; costs a few nanoseconds, exact to a few milliseconds.
inline int64_t CoarseMs() { return ReadClockNs(CLOCK_MONOTONIC_COARSE) / 1000000; }

}  // namespace record
