#include "keeper/daemonize.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "control/line.h"

namespace keeper {
namespace {

constexpr off_t kMaxLogBytes = 4 << 20;

// In the process that the daemon started. A daemon that died without a word is reported too.
[[noreturn]] void WaitForAnnouncement(int status_fd) {
  char status = 0;
  ssize_t got;
  do {
    got = read(status_fd, &status, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1) _exit(status);
  std::string line = FailureLine({EIO, "keeper", "The keeper ended without saying why; see engine.log in the store"});
  [[maybe_unused]] ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
  _exit(1);
}

Failure OpenLog(int store_fd, sys::UniqueFd* log) {
  log->Reset(openat(store_fd, "engine.log", O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!log->valid()) return MakeFailure(errno, "engine.log", "engine.log in the store can't be opened");
  struct stat st;
  if (fstat(log->get(), &st) == 0 && st.st_size > kMaxLogBytes && ftruncate(log->get(), 0) != 0) {
    return MakeFailure(errno, "engine.log", "engine.log in the store can't be cut");
  }
  return {};
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

// What the starter left open without meaning to: inherited descriptors have no close-on-exec flag, ours all do.
Failure CloseInherited(int project_fd, int store_fd) {
  std::unique_ptr<DIR, CloseDirectory> directory(opendir("/proc/self/fd"));
  if (directory == nullptr) return MakeFailure(errno, "/proc/self/fd", "The open descriptors can't be listed");
  std::vector<int> strays;
  while (const dirent* entry = readdir(directory.get())) {
    uint64_t number = 0;
    if (!control::ParseUnsigned(entry->d_name, &number)) continue;
    int fd = static_cast<int>(number);
    if (fd > STDERR_FILENO && fd != project_fd && fd != store_fd && (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) {
      strays.push_back(fd);
    }
  }
  for (int fd : strays) close(fd);
  return {};
}

}  // namespace

Failure Starter::Fork(Starter* starter) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return MakeFailure(errno, "pipe2", "A pipe can't be made");
  sys::UniqueFd read_end(ends[0]);
  sys::UniqueFd write_end(ends[1]);
  pid_t pid = fork();
  if (pid < 0) return MakeFailure(errno, "fork", "The keeper can't be started");
  if (pid > 0) {
    write_end.Reset();
    WaitForAnnouncement(read_end.get());
  }
  setsid();
  starter->status_ = std::move(write_end);
  starter->output_.Reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!starter->output_.valid()) return MakeFailure(errno, "dup", "Standard output can't be used");
  return {};
}

void Starter::Announce(const std::string& line, int status) {
  if (!status_.valid()) return;
  // Who started us may have gone; then nobody wants to know.
  [[maybe_unused]] ssize_t written = write(output_.get(), line.data(), line.size());
  char byte = static_cast<char>(status);
  written = write(status_.get(), &byte, 1);
  output_.Reset();
  status_.Reset();
}

Failure LetGo(int project_fd, int store_fd) {
  sys::UniqueFd log;
  if (Failure failure = OpenLog(store_fd, &log); failure.failed()) return failure;
  if (Failure failure = CloseInherited(project_fd, store_fd); failure.failed()) return failure;
  sys::UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return MakeFailure(errno, "/dev/null", "/dev/null can't be opened");
  if (dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0 || dup2(log.get(), STDERR_FILENO) < 0) {
    return MakeFailure(errno, "dup2", "The standard descriptors can't be replaced");
  }
  if (chdir("/") != 0) return MakeFailure(errno, "chdir", "The root folder can't be entered");
  for (int fd : {project_fd, store_fd}) {
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return MakeFailure(errno, "fcntl", "An inherited descriptor is not open");
  }
  return {};
}

}  // namespace keeper
