// Whose touch is it: thread id → process and lane. Called first thing in every touch, so the usual answer comes from a
// cache of the calling thread; after kTrustMs the thread id is checked against its process's start time once more.
//
// A process belongs to the lane of the newest owner that it descends from or whose token it carries in TURNFS_RUN; also
// when an ancestor was found to belong to it. Once found it stays so: parents end, and orphans get another parent.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "journal/records.h"
#include "record/proc_fs.h"
#include "record/side_threads.h"
#include "record/subject.h"

namespace record {

// The toucher as records name it.
struct Who {
  Lane lane = journal::kUserLane;
  uint32_t proc = 0;  // number of its Process record in this session; 0: unknown
};

class ProcessTable : public std::enable_shared_from_this<ProcessTable> {
 public:
  using Report = std::function<void(const journal::ProcessRecord&)>;

  // `report` is called once for every process that touches, on any thread, no lock held.
  static sys::Result<std::shared_ptr<ProcessTable>> Open(SideThreads* side, Report report);
  // `report` is not called any more when this returns.
  void Close();

  Who Identify(Toucher by);

  // Another owner, newer than all before. pid 0 or an empty token: no such sign.
  void AddOwner(Lane lane, uint32_t pid, const std::string& token);
  // A span begins. Those who belong to no owner are of its lane if that lane has no owner at all, else the user's.
  void BeginSpan(Lane lane);

 private:
  struct Owner {
    uint64_t number = 0;  // newer is higher; 0 is nobody
    Lane lane = journal::kUserLane;
    uint32_t pid = 0;
    uint64_t start_ticks = 0;
    std::string token;
  };

  struct Evidence {
    uint64_t owner = 0;
    Lane lane = journal::kUserLane;
  };

  // Guarded by mutex_, but for what never changes after it was made.
  struct Process {
    uint32_t pid = 0;
    uint64_t start_ticks = 0;
    std::string comm;
    uint32_t proc = 0;  // 0: known only as somebody's ancestor
    Evidence evidence;
    uint64_t judged = 0;  // generation in which `evidence` was last looked for
    Lane lane = journal::kUserLane;
    bool read = false;  // command and token have been read
    bool late = false;  // a request went on without waiting for them any longer
    bool reported = false;
    std::string command;
    std::string token;
  };
  using ProcessPtr = std::shared_ptr<Process>;

  struct Thread {
    uint64_t start_ticks = 0;
    ProcessPtr process;
  };

  ProcessTable(SideThreads* side, Report report) : side_(side), report_(std::move(report)) {}

  Who Find(uint32_t tid);
  ProcessPtr Meet(uint32_t tid, const ProcFs::ProcessStat& stat);
  Who Judge(const ProcessPtr& process, uint32_t parent);
  Evidence SearchAncestors(const ProcessPtr& process, uint32_t parent, const std::vector<Owner>& owners,
                           uint64_t generation);
  void ReadCommand(const ProcessPtr& process);
  void SayOnce(const ProcessPtr& process);
  void Sweep();
  void NewGeneration();

  SideThreads* const side_;
  ProcFs proc_fs_;
  bool sees_kernel_threads_ = false;  // set by Open

  std::mutex report_mutex_;  // held while report_ runs, so that Close can wait for it
  Report report_;

  std::atomic<uint64_t> generation_{0};  // changes whenever an answer may have become another one
  std::atomic<Lane> span_lane_{journal::kUserLane};

  std::mutex mutex_;  // guards everything below
  std::condition_variable read_;
  std::vector<Owner> owners_;  // oldest first
  uint64_t next_owner_ = 1;
  bool span_open_ = true;
  std::unordered_map<uint32_t, Thread> threads_;        // by tid
  std::unordered_map<uint32_t, ProcessPtr> processes_;  // by pid
  uint32_t next_proc_ = 1;
  size_t sweep_at_ = 1024;
};

}  // namespace record
