#include "record/process_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "record/clock.h"

namespace record {
namespace {

// A thread id can't come round to another process faster than this: that takes thousands of forks.
constexpr int64_t kTrustMs = 50;
// How long a request waits for a process's environment (its lane depends on it) or only for its command line.
constexpr auto kWaitForToken = std::chrono::milliseconds(20);
constexpr auto kWaitForCommand = std::chrono::milliseconds(2);
constexpr size_t kMaxCommandBytes = 4096;
constexpr size_t kMaxAncestors = 64;
constexpr uint32_t kKernelThreads = 2;  // kthreadd, the parent of them all
constexpr size_t kMaxOwners = 1024;
constexpr char kTokenVariable[] = "TURNFS_RUN";

// Generations are numbered over all tables of the program, so that an answer in a thread's cache names its table too.
std::atomic<uint64_t> last_generation{0};

struct CachedAnswer {
  uint32_t tid = 0;
  uint64_t generation = 0;
  int64_t until_ms = 0;
  Who who;
};

constexpr size_t kCachedAnswers = 64;
thread_local CachedAnswer cached_answers[kCachedAnswers];

}  // namespace

sys::Result<std::shared_ptr<ProcessTable>> ProcessTable::Open(SideThreads* side, Report report) {
  std::shared_ptr<ProcessTable> table(new ProcessTable(side, std::move(report)));
  if (auto opened = table->proc_fs_.Open(); !opened.ok()) return opened.error();
  // In a container number 2 is somebody else.
  auto kernel = table->proc_fs_.Stat(kKernelThreads);
  table->sees_kernel_threads_ = kernel.ok() && kernel.value().parent == 0 && kernel.value().comm == "kthreadd";
  table->NewGeneration();
  return table;
}

void ProcessTable::Close() {
  const std::lock_guard lock(report_mutex_);
  report_ = nullptr;
}

void ProcessTable::NewGeneration() { generation_.store(++last_generation, std::memory_order_release); }

void ProcessTable::AddOwner(Lane lane, uint32_t pid, const std::string& token) {
  Owner owner{0, lane, pid, 0, token};
  if (pid != 0) {
    auto stat = proc_fs_.Stat(pid);
    if (stat.ok()) {
      owner.start_ticks = stat.value().start_ticks;
    } else {
      owner.pid = 0;  // it has ended: what gets this number now is another process
    }
  }
  if (owner.pid == 0 && owner.token.empty() && pid == 0) return;
  const std::lock_guard lock(mutex_);
  // The newest wins, so an older owner with the same signs never decides again.
  std::erase_if(owners_, [&](const Owner& old) {
    return old.pid == owner.pid && old.start_ticks == owner.start_ticks && old.token == owner.token;
  });
  if (owners_.size() >= kMaxOwners) owners_.erase(owners_.begin());
  owner.number = next_owner_++;
  owners_.push_back(std::move(owner));
  NewGeneration();
}

void ProcessTable::BeginSpan(Lane lane) {
  const std::lock_guard lock(mutex_);
  span_lane_.store(lane, std::memory_order_relaxed);
  span_open_ = std::none_of(owners_.begin(), owners_.end(), [&](const Owner& owner) { return owner.lane == lane; });
  NewGeneration();
}

Who ProcessTable::Identify(Toucher by) {
  // Written back by the kernel: nobody can say whose pages they were.
  if (by.tid == 0) return Who{span_lane_.load(std::memory_order_relaxed), 0};
  const uint64_t generation = generation_.load(std::memory_order_acquire);
  const int64_t now_ms = CoarseMs();
  CachedAnswer& cached = cached_answers[by.tid % kCachedAnswers];
  if (cached.tid == by.tid && cached.generation == generation && now_ms < cached.until_ms) return cached.who;
  const Who who = Find(by.tid);
  cached = CachedAnswer{by.tid, generation, now_ms + kTrustMs, who};
  return who;
}

Who ProcessTable::Find(uint32_t tid) {
  auto stat = proc_fs_.Stat(tid);
  ProcessPtr process;
  {
    const std::lock_guard lock(mutex_);
    const auto known = threads_.find(tid);
    if (!stat.ok()) {
      // It was killed while its request was under way, or we may not see it.
      if (known != threads_.end()) return Who{known->second.process->lane, known->second.process->proc};
      return Who{span_open_ ? span_lane_.load(std::memory_order_relaxed) : journal::kUserLane, 0};
    }
    // The kernel itself (a loop device over a file here, an NFS server): nobody can say for whom.
    if (sees_kernel_threads_ && (stat.value().parent == kKernelThreads || tid == kKernelThreads)) {
      return Who{span_lane_.load(std::memory_order_relaxed), 0};
    }
    // A process that executes another program keeps number and start time, but is somebody else to people.
    if (known != threads_.end() && known->second.start_ticks == stat.value().start_ticks &&
        (known->second.process->pid != tid || known->second.process->comm == stat.value().comm)) {
      process = known->second.process;
    }
  }
  if (process == nullptr) process = Meet(tid, stat.value());
  const Who who = Judge(process, stat.value().parent);
  SayOnce(process);
  return who;
}

ProcessTable::ProcessPtr ProcessTable::Meet(uint32_t tid, const ProcFs::ProcessStat& stat) {
  uint32_t pid = tid;
  ProcFs::ProcessStat leader = stat;
  if (auto group = proc_fs_.ThreadGroup(tid); group.ok() && group.value() != tid) {
    if (auto found = proc_fs_.Stat(group.value()); found.ok()) {
      pid = group.value();
      leader = std::move(found.value());
    }
  }
  const std::lock_guard lock(mutex_);
  ProcessPtr& known = processes_[pid];
  const bool same = known != nullptr && known->start_ticks == leader.start_ticks;
  if (!same || known->proc == 0 || known->comm != leader.comm) {
    auto process = std::make_shared<Process>();
    process->pid = pid;
    process->start_ticks = leader.start_ticks;
    process->comm = leader.comm;
    process->proc = next_proc_++;
    if (same) process->evidence = known->evidence;
    known = process;
    side_->Post([self = shared_from_this(), process] { self->ReadCommand(process); });
  }
  threads_[tid] = Thread{stat.start_ticks, known};
  if (processes_.size() + threads_.size() > sweep_at_) {
    sweep_at_ = SIZE_MAX;  // one at a time
    side_->Post([self = shared_from_this()] { self->Sweep(); });
  }
  return known;
}

// On a side thread: may block.
void ProcessTable::ReadCommand(const ProcessPtr& process) {
  std::string command = proc_fs_.Command(process->pid, kMaxCommandBytes);
  auto token = proc_fs_.Environment(process->pid, kTokenVariable);
  bool late;
  {
    const std::lock_guard lock(mutex_);
    process->command = std::move(command);
    if (token.ok()) process->token = std::move(token.value());
    process->read = true;
    late = process->late;
    if (late) {
      process->judged = 0;
      NewGeneration();
    }
  }
  read_.notify_all();
  if (late) SayOnce(process);
}

// Looks for the newest owner among the process and its ancestors. What is found for an ancestor is kept, so that its
// next child has to look one step up only.
ProcessTable::Evidence ProcessTable::SearchAncestors(const ProcessPtr& process, uint32_t parent,
                                                     const std::vector<Owner>& owners, uint64_t generation) {
  struct Step {
    ProcessPtr process;
    Evidence evidence;
  };
  std::vector<Step> chain;
  auto look = [&](const ProcessPtr& one) {
    Step step{one, {}};
    for (const Owner& owner : owners) {
      if (owner.pid == one->pid && owner.start_ticks == one->start_ticks) step.evidence = {owner.number, owner.lane};
    }
    chain.push_back(step);
  };
  look(process);
  while (parent > 0 && chain.size() < kMaxAncestors) {
    auto stat = proc_fs_.Stat(parent);
    if (!stat.ok()) break;
    ProcessPtr ancestor;
    bool judged = false;
    {
      const std::lock_guard lock(mutex_);
      ProcessPtr& known = processes_[parent];
      if (known == nullptr || known->start_ticks != stat.value().start_ticks) {
        known = std::make_shared<Process>();
        known->pid = parent;
        known->start_ticks = stat.value().start_ticks;
        known->comm = stat.value().comm;
      }
      ancestor = known;
      judged = known->judged == generation;
    }
    look(ancestor);
    if (judged) break;  // with what is known about it, all above it is known
    parent = stat.value().parent;
  }
  const std::lock_guard lock(mutex_);
  Evidence best;
  for (auto step = chain.rbegin(); step != chain.rend(); ++step) {
    if (step->process->evidence.owner > best.owner) best = step->process->evidence;
    if (step->evidence.owner > best.owner) best = step->evidence;
    if (step->process == process) break;
    step->process->evidence = best;
    step->process->judged = generation;
  }
  return best;
}

Who ProcessTable::Judge(const ProcessPtr& process, uint32_t parent) {
  std::vector<Owner> owners;
  uint64_t generation;
  {
    std::unique_lock lock(mutex_);
    generation = generation_.load(std::memory_order_relaxed);
    if (process->judged == generation) return Who{process->lane, process->proc};
    owners = owners_;
  }
  Evidence best;
  if (!owners.empty()) best = SearchAncestors(process, parent, owners, generation);
  const bool token_matters = std::any_of(owners.begin(), owners.end(), [&](const Owner& owner) {
    return owner.number > best.owner && !owner.token.empty();
  });

  std::unique_lock lock(mutex_);
  if (!process->read && !process->late) {
    const auto wait = token_matters ? kWaitForToken : kWaitForCommand;
    if (!read_.wait_for(lock, wait, [&] { return process->read; })) process->late = true;
  }
  if (process->read && !process->token.empty()) {
    for (const Owner& owner : owners) {
      if (owner.number > best.owner && owner.token == process->token) best = {owner.number, owner.lane};
    }
  }
  process->evidence = best;
  const Lane others = span_open_ ? span_lane_.load(std::memory_order_relaxed) : journal::kUserLane;
  process->lane = best.owner != 0 ? best.lane : others;
  process->judged = generation;
  return Who{process->lane, process->proc};
}

void ProcessTable::SayOnce(const ProcessPtr& process) {
  journal::ProcessRecord record;
  std::string command;
  {
    const std::lock_guard lock(mutex_);
    if (process->reported || !process->read) return;
    process->reported = true;
    record.proc = process->proc;
    record.pid = process->pid;
    record.start_ticks = process->start_ticks;
    record.lane = process->lane;
    command = process->command;
  }
  record.comm = process->comm;
  record.command = command;
  const std::lock_guard lock(report_mutex_);
  if (report_) report_(record);
}

// On a side thread: forgets those that have ended.
void ProcessTable::Sweep() {
  std::vector<std::pair<uint32_t, uint64_t>> threads, processes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [tid, thread] : threads_) threads.emplace_back(tid, thread.start_ticks);
    for (const auto& [pid, process] : processes_) processes.emplace_back(pid, process->start_ticks);
  }
  auto ended = [&](const std::pair<uint32_t, uint64_t>& one) {
    auto stat = proc_fs_.Stat(one.first);
    return !stat.ok() || stat.value().start_ticks != one.second;
  };
  std::erase_if(threads, [&](const auto& one) { return !ended(one); });
  std::erase_if(processes, [&](const auto& one) { return !ended(one); });
  const std::lock_guard lock(mutex_);
  for (const auto& [tid, start] : threads) {
    const auto at = threads_.find(tid);
    if (at != threads_.end() && at->second.start_ticks == start) threads_.erase(at);
  }
  for (const auto& [pid, start] : processes) {
    const auto at = processes_.find(pid);
    if (at != processes_.end() && at->second->start_ticks == start) processes_.erase(at);
  }
  sweep_at_ = std::max<size_t>(1024, 2 * (processes_.size() + threads_.size()));
}

}  // namespace record
