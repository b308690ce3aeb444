// One line per request on stderr while it is on. Never file contents.
#pragma once

#include <atomic>
#include <cstdint>

#include "fuse/request.h"

namespace fuse {

class Trace {
 public:
  void Set(bool on) { on_.store(on, std::memory_order_relaxed); }
  bool on() const { return on_.load(std::memory_order_relaxed); }
  // `tx 812 WRITE n17 off=0 len=4096 pid=4711 touch=… → 0 58µs`
  void Line(const char* opcode, const Request& request, const Reply& reply, int error, uint64_t microseconds) const;

 private:
  std::atomic<bool> on_{false};
};

}  // namespace fuse
