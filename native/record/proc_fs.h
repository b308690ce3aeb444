// What /proc says about a process. `Stat` and `ThreadGroup` never block on the process. `Command` and `Environ` can:
// they take its memory lock, so only a side thread may call them.
#pragma once

#include <cstdint>
#include <string>

#include "sys/fd.h"
#include "sys/result.h"

namespace record {

class ProcFs {
 public:
  struct ProcessStat {
    uint32_t parent = 0;
    uint64_t start_ticks = 0;  // with the pid: which process this is, safe against reuse of the number
    std::string comm;
  };

  sys::Result<void> Open();
  sys::Result<ProcessStat> Stat(uint32_t tid) const;
  // The process that a thread belongs to.
  sys::Result<uint32_t> ThreadGroup(uint32_t tid) const;
  // argv, each ended by NUL; at most `limit` bytes of it. Empty when it can't be read.
  std::string Command(uint32_t pid, size_t limit) const;
  // The value of a variable in the environment the process was started with.
  sys::Result<std::string> Environment(uint32_t pid, const std::string& variable) const;

 private:
  sys::Result<std::string> Read(uint32_t pid, const char* file, size_t limit) const;

  sys::UniqueFd proc_;
};

}  // namespace record
