// The store's `heartbeat` file: u64, CLOCK_REALTIME nanoseconds of the last moment the engine was alive. After a crash,
// objects with a later ctime were changed by somebody else.
#pragma once

#include <atomic>
#include <cstdint>

#include "sys/fd.h"
#include "sys/result.h"

namespace record {

class Heartbeat {
 public:
  Heartbeat() = default;
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  sys::Result<void> Open(int store_fd);
  void Beat();
  void BeatAt(int64_t now_ns);

 private:
  sys::UniqueFd fd_;
  std::atomic<uint64_t>* mapped_ = nullptr;  // nullptr: written with pwrite
};

}  // namespace record
