#include "keeper/keeper.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "keeper/daemonize.h"
#include "keeper/guard.h"
#include "keeper/log.h"
#include "keeper/mount.h"
#include "keeper/options.h"

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

namespace keeper {
namespace {

constexpr int64_t kReadyMs = 30000;
// How long an unmounting child may take once the engine is gone before /dev/fuse is closed, which ends its wait.
constexpr int64_t kUnmountMs = 5000;

int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

class Keeper {
 public:
  Keeper(Options options, Starter starter) : options_(std::move(options)), starter_(std::move(starter)) {}

  // The whole life of the daemon. Returns its exit status.
  int Run();

 private:
  enum class State { kStarting, kProbing, kServing, kLeaving };

  Failure Prepare();
  Failure StartEngine();
  [[noreturn]] void ExecEngine();
  void TakeSignals();
  void Reap();
  void ReadReport();
  void EngineReported(const std::string& line);
  void StartProbe();
  void ProbeEnded(int status);
  void BeginUnmount();
  void StartUnmount(bool lazy);
  void UnmountEnded(int status);
  void WaitForUnmount(int64_t milliseconds);
  void Fail(std::string line);
  int Finish();
  std::string DescribeEngineEnd() const;

  Options options_;
  Starter starter_;
  State state_ = State::kStarting;
  Mounted mounted_;
  sys::UniqueFd signals_;
  sys::UniqueFd lifeline_read_;
  sys::UniqueFd lifeline_write_;
  sys::UniqueFd report_read_;
  sys::UniqueFd report_write_;
  std::string report_;
  int64_t ready_deadline_ms_ = 0;
  pid_t engine_ = -1;
  pid_t guard_ = -1;
  pid_t probe_ = -1;
  pid_t unmount_ = -1;
  bool unmount_lazy_ = false;
  bool engine_ended_ = false;
  int engine_status_ = 0;
  std::string failure_line_;  // not empty: what to announce instead of ready
};

Failure MakePipe(sys::UniqueFd* read_end, sys::UniqueFd* write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return MakeFailure(errno, "pipe2", "A pipe can't be made");
  read_end->Reset(ends[0]);
  write_end->Reset(ends[1]);
  return {};
}

Failure Keeper::Prepare() {
  prctl(PR_SET_NAME, "turnfs-keeper");
  if (Failure failure = LetGo(options_.project_fd, options_.store_fd); failure.failed()) return failure;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  sigset_t watched;
  sigemptyset(&watched);
  for (int number : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&watched, number);
  sigprocmask(SIG_SETMASK, &watched, nullptr);
  signals_.Reset(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return MakeFailure(errno, "signalfd", "Signals can't be watched");
  if (Failure failure = MakePipe(&lifeline_read_, &lifeline_write_); failure.failed()) return failure;
  return MakePipe(&report_read_, &report_write_);
}

Failure Keeper::StartEngine() {
  guard_ = StartGuard(mounted_, lifeline_read_.get());
  if (guard_ < 0) return MakeFailure(errno, "fork", "The guard can't be started");
  options_.mountpoint = mounted_.mountpoint;
  options_.fuse_fd = mounted_.fuse_fd.get();
  options_.lifeline_fd = lifeline_read_.get();
  options_.report_fd = report_write_.get();
  options_.keeper_pid = getpid();
  options_.connection = mounted_.entry.device_minor;
  engine_ = fork();
  if (engine_ < 0) return MakeFailure(errno, "fork", "The engine can't be started");
  if (engine_ == 0) ExecEngine();
  report_write_.Reset();
  fcntl(report_read_.get(), F_SETFL, O_NONBLOCK);
  return {};
}

void Keeper::ExecEngine() {
  std::vector<std::string> arguments = EngineArguments(options_);
  char program[] = "turnfs-engine";
  std::vector<char*> argv{program};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  for (int fd : {options_.project_fd, options_.store_fd, options_.fuse_fd, options_.lifeline_fd, options_.report_fd}) {
    fcntl(fd, F_SETFD, 0);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv("/proc/self/exe", argv.data());
  std::string line = FailureLine(MakeFailure(errno, "execv", "The engine can't be started"));
  [[maybe_unused]] ssize_t written = write(options_.report_fd, line.data(), line.size());
  _exit(1);
}

int Keeper::Run() {
  Failure failure = Prepare();
  if (!failure.failed()) failure = Mount(options_.project_fd, options_.mountpoint, &mounted_);
  if (!failure.failed()) failure = StartEngine();
  if (failure.failed()) {
    Fail(FailureLine(failure));
    return Finish();
  }
  ready_deadline_ms_ = NowMs() + kReadyMs;
  while (!engine_ended_) {
    bool ready_or_failed = state_ == State::kServing || state_ == State::kLeaving || !failure_line_.empty();
    int64_t left = ready_deadline_ms_ - NowMs();
    if (!ready_or_failed && left <= 0) {
      Fail(FailureLine({ETIMEDOUT, "engine", "The engine did not answer in time; see engine.log in the store"}));
      continue;
    }
    pollfd polled[2] = {{signals_.get(), POLLIN, 0}, {report_read_.get(), POLLIN, 0}};
    if (poll(polled, 2, ready_or_failed ? -1 : static_cast<int>(left)) < 0 && errno != EINTR) {
      Log("poll failed: %s", strerror(errno));
      kill(engine_, SIGKILL);
    }
    if (report_read_.valid()) ReadReport();
    TakeSignals();
  }
  return Finish();
}

void Keeper::TakeSignals() {
  bool leave = false;
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    leave = leave || info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
  }
  Reap();
  if (leave && !engine_ended_) BeginUnmount();
}

void Keeper::Reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == engine_) {
      engine_ended_ = true;
      engine_status_ = status;
    } else if (pid == probe_) {
      probe_ = -1;
      ProbeEnded(status);
    } else if (pid == unmount_) {
      unmount_ = -1;
      UnmountEnded(status);
    } else if (pid == guard_) {
      guard_ = -1;
      // Killed; the mount needs one as long as the engine lives.
      if (!engine_ended_) guard_ = StartGuard(mounted_, lifeline_read_.get());
    }
  }
}

void Keeper::ReadReport() {
  char bytes[4096];
  for (;;) {
    ssize_t got = read(report_read_.get(), bytes, sizeof bytes);
    if (got < 0) return;  // EAGAIN: later
    if (got == 0) break;
    report_.append(bytes, static_cast<size_t>(got));
  }
  report_read_.Reset();
  EngineReported(report_);
}

// An engine that ended without a report is seen by waitpid.
void Keeper::EngineReported(const std::string& line) {
  if (line == "ready\n") {
    state_ = State::kProbing;
    StartProbe();
  } else if (line.ends_with('\n')) {
    Fail(line);
  }
}

// statfs always asks the filesystem, so an answer means: INIT is done and the engine serves. In a child, because the
// wait can't be broken off; the child must not hold /dev/fuse, or the death of the engine would not end it either.
void Keeper::StartProbe() {
  probe_ = fork();
  if (probe_ < 0) {
    Fail(FailureLine(MakeFailure(errno, "fork", "The mount can't be probed")));
    return;
  }
  if (probe_ > 0) return;
  mounted_.fuse_fd.Reset();
  lifeline_write_.Reset();
  struct statfs st;
  if (statfs(mounted_.mountpoint.c_str(), &st) != 0) _exit(errno);
  _exit(st.f_type == FUSE_SUPER_MAGIC ? 0 : ESTALE);
}

void Keeper::ProbeEnded(int status) {
  if (state_ != State::kProbing || !failure_line_.empty()) return;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    int number = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
    Fail(FailureLine(MakeFailure(number, "statfs", "The mounted folder does not answer")));
    return;
  }
  state_ = State::kServing;
  char line[128];
  snprintf(line, sizeof line, "ready pid=%d keeper=%d project_fd=%d store_fd=%d\n", engine_, getpid(),
           options_.project_fd, options_.store_fd);
  starter_.Announce(line, 0);
  Log("mounted at %s, engine %d", mounted_.mountpoint.c_str(), engine_);
}

// The first SIGTERM unmounts; the engine ends when the kernel lets it. A second one does not wait for that.
void Keeper::BeginUnmount() {
  if (state_ == State::kLeaving) {
    Log("told to end twice: killing the engine");
    kill(engine_, SIGKILL);
    return;
  }
  if (state_ != State::kServing) {
    Fail(FailureLine({EINTR, "keeper", "The keeper was told to end before the mount was ready"}));
    return;
  }
  state_ = State::kLeaving;
  if (unmount_ < 0) StartUnmount(/*lazy=*/false);
}

void Keeper::StartUnmount(bool lazy) {
  if (!IsMounted(mounted_.mountpoint, mounted_.entry)) return;
  unmount_lazy_ = lazy;
  unmount_ = fork();
  if (unmount_ < 0) Log("fork failed: %s", strerror(errno));
  if (unmount_ != 0) return;
  mounted_.fuse_fd.Reset();
  lifeline_write_.Reset();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  Failure failure = Unmount(mounted_.mountpoint, lazy);
  if (failure.failed()) Log("%s", failure.message.c_str());
  _exit(failure.failed() ? 1 : 0);
}

void Keeper::UnmountEnded(int status) {
  bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  // In use: open files go on until they are closed, but nobody gets in any more.
  if (!done && !unmount_lazy_) StartUnmount(/*lazy=*/true);
}

// Before ready: remembers what to say, and ends the engine. Run goes on until it is gone.
void Keeper::Fail(std::string line) {
  if (failure_line_.empty()) failure_line_ = std::move(line);
  if (engine_ > 0 && !engine_ended_) kill(engine_, SIGKILL);
}

void Keeper::WaitForUnmount(int64_t milliseconds) {
  int64_t deadline = NowMs() + milliseconds;
  while (unmount_ > 0 && NowMs() < deadline) {
    pollfd polled{signals_.get(), POLLIN, 0};
    poll(&polled, 1, static_cast<int>(std::max<int64_t>(deadline - NowMs(), 0)));
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    }
    Reap();
  }
}

std::string Keeper::DescribeEngineEnd() const {
  if (WIFSIGNALED(engine_status_)) {
    return std::string("signal ") + std::to_string(WTERMSIG(engine_status_)) + " (" +
           strsignal(WTERMSIG(engine_status_)) + ")";
  }
  return "status " + std::to_string(WEXITSTATUS(engine_status_));
}

// The engine is gone, or never was. The mount goes, then /dev/fuse: requests that wait get an error, the folder is
// plain.
int Keeper::Finish() {
  engine_ended_ = true;
  bool announced_ready = state_ == State::kServing || state_ == State::kLeaving;
  bool in_order = announced_ready && WIFEXITED(engine_status_) && WEXITSTATUS(engine_status_) == 0;
  if (!announced_ready && failure_line_.empty()) {
    failure_line_ =
        FailureLine({EIO, "engine", "The engine ended with " + DescribeEngineEnd() + " before it was ready"});
  }
  if (announced_ready && !in_order) Log("the engine ended with %s: unmounting", DescribeEngineEnd().c_str());
  if (mounted_.fuse_fd.valid()) {
    if (unmount_ < 0) StartUnmount(/*lazy=*/true);
    WaitForUnmount(kUnmountMs);
    mounted_.fuse_fd.Reset();
    WaitForUnmount(kUnmountMs);
    // A non-lazy one that was under way may have failed in the meantime.
    if (unmount_ < 0) StartUnmount(/*lazy=*/true);
    WaitForUnmount(kUnmountMs);
    if (IsMounted(mounted_.mountpoint, mounted_.entry)) Log("%s is still mounted", mounted_.mountpoint.c_str());
  }
  if (engine_ > 0 && !in_order) unlink(options_.control_path.c_str());
  // Tells the guard that there is nothing left to do.
  if (lifeline_write_.valid()) {
    [[maybe_unused]] ssize_t written = write(lifeline_write_.get(), "", 1);
  }
  if (!failure_line_.empty()) starter_.Announce(failure_line_, 1);
  return in_order ? 0 : 1;
}

}  // namespace

int KeeperMain(int argc, char** argv) {
  Options options;
  std::string complaint;
  Starter starter;
  Failure failure;
  if (!ParseOptions(argc, argv, Role::kKeeper, &options, &complaint)) {
    failure = {EINVAL, "options", complaint};
  } else {
    failure = Starter::Fork(&starter);
  }
  if (failure.failed()) {
    fputs(FailureLine(failure).c_str(), stdout);
    return 2;
  }
  return Keeper(std::move(options), std::move(starter)).Run();
}

}  // namespace keeper
