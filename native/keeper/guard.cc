#include "keeper/guard.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/log.h"

namespace keeper {
namespace {

constexpr int kLifelinePlace = 3;

[[noreturn]] void RunGuard(const std::string& mountpoint, const MountEntry& entry, int lifeline) {
  prctl(PR_SET_NAME, "turnfs-guard");
  // Above all not /dev/fuse: as long as somebody holds it, requests to a dead engine wait instead of failing.
  if (dup2(lifeline, kLifelinePlace) < 0 || syscall(SYS_close_range, kLifelinePlace + 1, ~0u, 0) != 0) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // What ends a whole group of processes in order ends the keeper in order, and that ends the guard.
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  if (WaitForLifeline(kLifelinePlace, -1) == LifelineEnd::kOrderly || !IsMounted(mountpoint, entry)) _exit(0);
  Log("the keeper was killed: unmounting %s", mountpoint.c_str());
  Failure failure = Unmount(mountpoint, /*lazy=*/true);
  if (failure.failed()) Log("%s", failure.message.c_str());
  _exit(failure.failed() ? 1 : 0);
}

}  // namespace

LifelineEnd WaitForLifeline(int lifeline, int wake) {
  pollfd polled[2] = {{lifeline, POLLIN, 0}, {wake, POLLIN, 0}};
  while (poll(polled, 2, -1) < 0 && errno == EINTR) {
  }
  bool orderly = polled[1].revents != 0 || (polled[0].revents & POLLIN) != 0;
  return orderly ? LifelineEnd::kOrderly : LifelineEnd::kKilled;
}

pid_t StartGuard(const Mounted& mounted, int lifeline) {
  pid_t pid = fork();
  if (pid == 0) RunGuard(mounted.mountpoint, mounted.entry, lifeline);
  return pid;
}

}  // namespace keeper
