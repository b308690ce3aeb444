// Threads for what must not hold up a request: reading another process's command line, which can wait for the very
// request it would be read for (its memory lock is held while it waits for our reply), and freeing large tables.
// A job may block; another thread is then started for the next, up to a limit.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "sys/result.h"

namespace record {

class SideThreads {
 public:
  static sys::Result<std::unique_ptr<SideThreads>> Start();
  // Waits for the jobs, but not longer than a second: one that is blocked is left behind, so jobs own what they use.
  ~SideThreads();

  void Post(std::function<void()> job);

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable work, gone;
    std::deque<std::function<void()>> jobs;
    unsigned threads = 0, idle = 0;
    bool stop = false;
  };

  explicit SideThreads(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static int Spawn(const std::shared_ptr<Shared>& shared);
  static void* Run(void* argument);

  std::shared_ptr<Shared> shared_;
};

}  // namespace record
