#include "keeper/engine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "control/errno_name.h"
#include "control/server.h"
#include "control/verbs.h"
#include "keeper/failure.h"
#include "keeper/guard.h"
#include "keeper/log.h"
#include "keeper/mount.h"
#include "keeper/options.h"

namespace keeper {
namespace {

constexpr int kGuardMs = 5000;  // what the guard gets for unmounting
constexpr int kDrainMs = 2000;  // what the session gets to end by itself once the mount is gone
constexpr int kStepMs = 20;

void SleepMs(int milliseconds) {
  timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000L};
  nanosleep(&time, nullptr);
}

// One line to the keeper; closes the descriptor, so that the keeper sees the end of it.
void Report(sys::UniqueFd* report, const std::string& line) {
  [[maybe_unused]] ssize_t written = write(report->get(), line.data(), line.size());
  report->Reset();
}

// Watches the keeper. When that is killed, the guard unmounts; the engine goes on answering meanwhile and ends after
// it.
class KeeperWatch {
 public:
  KeeperWatch(session::Session* session, const Options& options)
      : session_(session), options_(options), wake_(eventfd(0, EFD_CLOEXEC)) {
    thread_ = std::thread([this] { Watch(); });
  }
  ~KeeperWatch() {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t written = write(wake_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  bool StillMounted() const {
    auto entry = FindMount(options_.mountpoint);
    return entry.has_value() && entry->type == kMountType && entry->device_minor == options_.connection;
  }

  bool Woken(int milliseconds) const {
    pollfd polled{wake_.get(), POLLIN, 0};
    return poll(&polled, 1, milliseconds) > 0;
  }

  void Watch() {
    prctl(PR_SET_NAME, "turnfs-watch");
    if (WaitForLifeline(options_.lifeline_fd, wake_.get()) == LifelineEnd::kOrderly) return;
    Log("the keeper was killed");
    for (int waited = 0; StillMounted() && waited < kGuardMs; waited += kStepMs) SleepMs(kStepMs);
    if (StillMounted() && geteuid() == 0) {
      Failure failure = Unmount(options_.mountpoint, /*lazy=*/true);
      if (failure.failed()) Log("%s", failure.message.c_str());
    }
    // Nobody had anything open: the session has ended in order by now.
    if (Woken(kDrainMs)) return;
    auto synced = session_->Sync();
    if (!synced.ok()) Log("the journal can't be synced: %s", strerror(synced.error().number));
    Log("ending with files still open in the mount");
    unlink(options_.control_path.c_str());
    _exit(1);
  }

  session::Session* session_;
  const Options& options_;
  sys::UniqueFd wake_;
  std::thread thread_;
};

void SetUpProcess(const Options& options) {
  prctl(PR_SET_NAME, "turnfs-engine");
  for (int fd : {options.project_fd, options.store_fd, options.fuse_fd, options.lifeline_fd, options.report_fd}) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  // What ends a group of processes in order is the keeper's business: it unmounts, and that ends the engine.
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  // Modes come from requests, which the kernel has masked already.
  umask(0);
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) Log("the limit of open files can't be raised: %s", strerror(errno));
  }
}

// Before any thread is started. nullptr for root, who needs none, and where user namespaces are forbidden.
std::unique_ptr<sys::Opener> StartOpener() {
  if (geteuid() == 0) return nullptr;
  auto opener = sys::Opener::Start();
  if (opener.ok()) return std::move(opener.value());
  Log("no user namespace (%s in %s): files whose mode forbids their owner to write stay unwritable, as git's objects "
      "are",
      control::ErrnoName(opener.error().number), opener.error().where);
  return nullptr;
}

sys::Result<uint64_t> RandomNumber() {
  uint64_t number = 0;
  while (number == 0) {
    if (getrandom(&number, sizeof number, 0) != sizeof number) return sys::LastError("getrandom");
  }
  return number;
}

session::Options SessionOptions(const Options& options, uint64_t session_number) {
  session::Options session;
  session.fuse_fd = options.fuse_fd;
  session.project_fd = options.project_fd;
  session.store_fd = options.store_fd;
  session.threads = options.threads;
  session.trace = options.trace;
  session.mountpoint = options.mountpoint;
  session.recorder.store_fd = options.store_fd;
  session.recorder.project_fd = options.project_fd;
  session.recorder.session = session_number;
  session.recorder.next_object = options.next_object;
  session.recorder.next_seq = options.next_seq;
  session.recorder.next_pack = options.next_pack;
  session.recorder.epoch = options.epoch;
  session.recorder.max_preimage_bytes = options.max_preimage_bytes;
  session.recorder.skip_on_failure = options.skip_on_failure;
  session.first_span.meta = options.meta;
  session.lane_owners = options.lane_owners;
  return session;
}

int Serve(const Options& options, sys::UniqueFd report) {
  auto fail = [&report](sys::Error error, const char* what) {
    Failure failure = MakeFailure(error.number, error.where, std::string(what) + " (" + error.where + ")");
    Log("%s", failure.message.c_str());
    Report(&report, FailureLine(failure));
    return 1;
  };
  auto number = RandomNumber();
  if (!number.ok()) return fail(number.error(), "There are no random numbers");
  std::unique_ptr<sys::Opener> opener = StartOpener();
  session::Options session_options = SessionOptions(options, number.value());
  session_options.opener = opener.get();
  auto session = session::Session::Start(session_options);
  if (!session.ok()) return fail(session.error(), "The engine can't start");
  control::EngineFacts facts{number.value(), options.keeper_pid, options.connection, options.mountpoint};
  auto server = control::Server::Start(options.control_path, control::MakeHandler(session.value().get(), facts));
  if (!server.ok()) return fail(server.error(), "The control socket can't be opened");
  KeeperWatch watch(session.value().get(), options);
  Report(&report, "ready\n");
  int error = session.value()->Run();
  if (error != 0) Log("the connection to the kernel broke: %s", strerror(error));
  server.value().reset();
  return error == 0 ? 0 : 1;
}

}  // namespace

int EngineMain(int argc, char** argv) {
  Options options;
  std::string complaint;
  if (!ParseOptions(argc, argv, Role::kEngine, &options, &complaint)) {
    fprintf(stderr, "turnfs-engine: %s\n", complaint.c_str());
    return 2;
  }
  SetUpProcess(options);
  return Serve(options, sys::UniqueFd(options.report_fd));
}

}  // namespace keeper
