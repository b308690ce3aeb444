// The gate: the only way from a handler to a change of the project. A mutating wrapper (sys/mutate.h) takes a Pass,
// only the gate makes one, and only after the recorder has the pre-image in the store: a mutation that skips capture
// does not compile.
//
// Lock order of the whole engine:
//   barrier (shared) → objects (one at a time; a child before its parents never) → inode table → descriptor cache →
//   journal.
// All are dropped before the reply, because the kernel may forget the inode at once.
//
// The barrier is held shared from the first-touch question to the end of the change, and never while waiting for a
// message from the kernel. Advance takes it exclusively: it waits for executions that are inside, not for queued
// requests; holding a request back while another thing goes through the mount can deadlock (directory, rename and inode
// locks stay held in the kernel).
#pragma once

#include <cstdint>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "gate/barrier.h"
#include "inode/table.h"
#include "record/recorder.h"
#include "sys/result.h"

namespace gate {

class Gate;

// Proof that what is about to change has been recorded. Lives as long as the execution; keeps the barrier shared. When
// it ends the change is through, and the heartbeat says so: after a crash, what changed later than the last beat was
// somebody else's doing.
class Pass {
 public:
  Pass(Pass&& other) noexcept : held_(std::move(other.held_)), recorder_(std::exchange(other.recorder_, nullptr)) {}
  Pass(const Pass&) = delete;
  ~Pass() {
    if (recorder_ != nullptr) recorder_->Heartbeat();
  }

 private:
  friend class Gate;
  Pass(SharedBarrier held, record::Recorder& recorder) : held_(std::move(held)), recorder_(&recorder) {}
  SharedBarrier held_;
  record::Recorder* recorder_;
};

class Gate {
 public:
  Gate(inode::Table& inodes, record::Recorder& recorder);

  // --- names ---
  // 0, or the errno that a lookup (ENOENT) or a change (EPERM) of this name in this directory gets: the store is
  // invisible.
  int CheckVisible(inode::Inode& dir, std::string_view name) const;
  int CheckChangeable(inode::Inode& dir, std::string_view name) const;
  // The door: a directory in the root of the mount that is the store.
  std::string OpenDoor();
  void CloseDoor();
  bool IsDoor(inode::Inode& dir, std::string_view name) const;
  // Nothing below the store is cached by the kernel.
  static bool Uncached(const inode::Inode& dir) { return dir.realm() == inode::Realm::kStore; }

  // --- permissions to change; each asks the recorder first ---
  // `present` is what the name means now, nullptr when it is free.
  sys::Result<Pass> MutateEntry(inode::Inode& dir, std::string_view name, inode::Inode* present, record::Toucher by);
  sys::Result<Pass> MutateEntries(inode::Inode& dir, std::string_view name, inode::Inode* present, inode::Inode& to_dir,
                                  std::string_view to_name, inode::Inode* to_present, record::Toucher by);
  sys::Result<Pass> MutateAttrs(inode::Inode& object, record::Toucher by);
  sys::Result<Pass> MutateBytes(inode::Inode& object, uint64_t offset, uint64_t length, record::Toucher by);

  // For an object that is made without any name: nothing in the project changes by it.
  Pass MakeNameless();

  inode::Table& inodes() { return inodes_; }
  record::Recorder& recorder() { return recorder_; }
  Barrier& barrier() { return barrier_; }

 private:
  SharedBarrier Enter() { return SharedBarrier(barrier_); }

  inode::Table& inodes_;
  record::Recorder& recorder_;
  Barrier barrier_;
  mutable std::shared_mutex door_mutex_;
  std::string door_;  // "" when closed; guarded by door_mutex_
};

}  // namespace gate
