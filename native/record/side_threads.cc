#include "record/side_threads.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <utility>

namespace record {
namespace {

constexpr unsigned kMaxThreads = 4;

}  // namespace

sys::Result<std::unique_ptr<SideThreads>> SideThreads::Start() {
  auto shared = std::make_shared<Shared>();
  shared->threads = 1;
  if (const int error = Spawn(shared); error != 0) return sys::Error{error, "pthread_create"};
  return std::unique_ptr<SideThreads>(new SideThreads(std::move(shared)));
}

SideThreads::~SideThreads() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->work.notify_all();
  shared_->gone.wait_for(lock, std::chrono::seconds(1), [&] { return shared_->threads == 0; });
}

// The caller has counted the thread already.
int SideThreads::Spawn(const std::shared_ptr<Shared>& shared) {
  auto* argument = new std::shared_ptr<Shared>(shared);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // Signals are for the main thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, Run, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) delete argument;
  return error;
}

void SideThreads::Post(std::function<void()> job) {
  bool spawn = false;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->jobs.push_back(std::move(job));
    if (shared_->jobs.size() > shared_->idle && shared_->threads < kMaxThreads) {
      shared_->threads++;
      spawn = true;
    }
    shared_->work.notify_one();
  }
  if (!spawn || Spawn(shared_) == 0) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->threads--;
}

void* SideThreads::Run(void* argument) {
  auto* given = static_cast<std::shared_ptr<Shared>*>(argument);
  const std::shared_ptr<Shared> shared = std::move(*given);
  delete given;
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->idle++;
    shared->work.wait(lock, [&] { return shared->stop || !shared->jobs.empty(); });
    shared->idle--;
    if (shared->jobs.empty()) break;
    {
      const std::function<void()> job = std::move(shared->jobs.front());
      shared->jobs.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
  shared->threads--;
  shared->gone.notify_all();
  return nullptr;
}

}  // namespace record
