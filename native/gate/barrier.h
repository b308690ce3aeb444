// The lock that every execution shares and a change of epoch takes alone.
#pragma once

#include <pthread.h>

#include <utility>

namespace gate {

// Writer-preferring, or else a stream of readers could keep a turn from beginning. Readers never nest.
class Barrier {
 public:
  Barrier() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~Barrier() { pthread_rwlock_destroy(&lock_); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  void EnterShared() { pthread_rwlock_rdlock(&lock_); }
  void EnterAlone() { pthread_rwlock_wrlock(&lock_); }
  void Leave() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

class SharedBarrier {
 public:
  explicit SharedBarrier(Barrier& barrier) : barrier_(&barrier) { barrier_->EnterShared(); }
  SharedBarrier(SharedBarrier&& other) noexcept : barrier_(std::exchange(other.barrier_, nullptr)) {}
  SharedBarrier(const SharedBarrier&) = delete;
  ~SharedBarrier() {
    if (barrier_ != nullptr) barrier_->Leave();
  }

 private:
  Barrier* barrier_;
};

class ExclusiveBarrier {
 public:
  explicit ExclusiveBarrier(Barrier& barrier) : barrier_(barrier) { barrier_.EnterAlone(); }
  ExclusiveBarrier(const ExclusiveBarrier&) = delete;
  ~ExclusiveBarrier() { barrier_.Leave(); }

 private:
  Barrier& barrier_;
};

}  // namespace gate
