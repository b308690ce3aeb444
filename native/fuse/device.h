// The device loop: reads requests from /dev/fuse, gives each to its handler, writes one answer. Worker threads share
// one descriptor: a cloned one that died with its engine would end its requests (ECONNABORTED), on a shared one they
// wait for another engine.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "fuse/trace.h"
#include "ops/context.h"

namespace fuse {

class Workers {
 public:
  Workers(int fuse_fd, ops::Context& context) : fuse_fd_(fuse_fd), context_(context) {}

  // Serves with `threads` threads until the connection ends: 0 when the filesystem was unmounted, else an errno.
  int Run(unsigned threads);

  // Waits until every request that some worker had read from the device when this was called is answered. A worker that
  // sits in read(2) may have one already without knowing, so each is woken by a signal and says once that it has come
  // round. Called without any lock held, before the barrier is taken alone.
  void Drain();

  Trace& trace() { return trace_; }
  uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }
  bool initialised() const { return initialised_.load(std::memory_order_acquire); }

 private:
  struct Worker {
    std::thread thread;
    std::atomic<uint64_t> came_round{0};  // the newest drain that this worker has answered
    std::atomic<bool> ended{false};
  };

  void Serve(Worker& worker);
  // False: the connection has ended, end_error_ says how.
  bool ServeOne(std::byte* in, std::byte* out);
  void Handle(const fuse_in_header& header, std::span<const std::byte> message, std::byte* out);
  int HandleInit(std::span<const std::byte> message, Reply& reply);
  void Answer(uint64_t unique, int error, const Reply& reply);
  void EndWith(int error);

  int fuse_fd_;
  ops::Context& context_;
  Trace trace_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<uint64_t> drain_{0};
  std::atomic<uint64_t> requests_{0};
  std::atomic<bool> initialised_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> end_error_{0};
};

}  // namespace fuse
