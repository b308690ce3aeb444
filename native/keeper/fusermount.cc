#include "keeper/fusermount.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace keeper {
namespace {

constexpr char kCommFdVariable[] = "_FUSE_COMMFD";
constexpr char kUsualFolders[] = "/usr/bin:/bin:/usr/local/bin:/usr/sbin:/sbin";

std::string FindIn(std::string folders, const char* program) {
  while (!folders.empty()) {
    size_t colon = folders.find(':');
    std::string folder = folders.substr(0, colon);
    folders = colon == std::string::npos ? "" : folders.substr(colon + 1);
    if (folder.empty() || folder.front() != '/') continue;
    std::string path = folder + "/" + program;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

// fusermount of libfuse 2 understands the same.
std::string FindFusermount() {
  const char* path = getenv("PATH");
  for (const char* program : {"fusermount3", "fusermount"}) {
    std::string found = FindIn(path == nullptr ? "" : path, program);
    if (found.empty()) found = FindIn(kUsualFolders, program);
    if (!found.empty()) return found;
  }
  return "";
}

[[noreturn]] void ExecFusermount(const std::string& program, std::vector<std::string>* arguments, int complaints,
                                 int comm_fd) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int null = open("/dev/null", O_RDWR);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
      dup2(complaints, STDERR_FILENO) < 0) {
    _exit(126);
  }
  if (comm_fd >= 0) {
    fcntl(comm_fd, F_SETFD, 0);
    setenv(kCommFdVariable, std::to_string(comm_fd).c_str(), 1);
  }
  std::vector<char*> argv;
  for (std::string& argument : *arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(126);
}

std::string ReadAll(int fd) {
  std::string text;
  char bytes[1024];
  for (;;) {
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(bytes, static_cast<size_t>(got));
  }
}

// The helper says no errno, only a text that ends in one's description.
int GuessErrno(const std::string& complaint) {
  for (int number : {EBUSY, EPERM, EACCES, ENOENT, ENODEV, EINVAL, ENOTDIR, ENOMEM, ENOSPC}) {
    if (complaint.find(strerror(number)) != std::string::npos) return number;
  }
  if (complaint.find("modprobe fuse") != std::string::npos) return ENODEV;
  return EPERM;
}

Failure RunFusermount(std::vector<std::string> arguments, int comm_fd) {
  std::string program = FindFusermount();
  if (program.empty()) {
    return {ENOENT, "fusermount3", "fusermount3 is not installed; an ordinary user needs it (package fuse3)"};
  }
  arguments.insert(arguments.begin(), program);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return MakeFailure(errno, "pipe2", "A pipe can't be made");
  sys::UniqueFd read_end(ends[0]);
  sys::UniqueFd write_end(ends[1]);
  pid_t child = fork();
  if (child < 0) return MakeFailure(errno, "fork", "fusermount3 can't be started");
  if (child == 0) ExecFusermount(program, &arguments, write_end.get(), comm_fd);
  write_end.Reset();
  std::string complaint = ReadAll(read_end.get());
  while (!complaint.empty() && complaint.back() == '\n') complaint.pop_back();
  for (char& c : complaint) {
    if (c == '\n') c = ' ';
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return MakeFailure(errno, "waitpid", "fusermount3 can't be waited for");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  // `mount` only where the kernel refused: the helper's own rules (who owns the mountpoint …) don't mean that FUSE is
  // missing.
  bool by_kernel = complaint.find("mount failed") != std::string::npos;
  return {GuessErrno(complaint), by_kernel ? "mount" : "mount-helper",
          complaint.empty() ? "fusermount3 failed" : complaint};
}

Failure ReceiveDescriptor(int socket, sys::UniqueFd* fd) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  // It was sent before the helper ended, so there is nothing to wait for.
  ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return {EPROTO, "recvmsg", "fusermount3 mounted but handed no descriptor over"};
  }
  int number = -1;
  memcpy(&number, CMSG_DATA(header), sizeof number);
  fd->Reset(number);
  return {};
}

}  // namespace

Failure FusermountMount(const std::string& mountpoint, const std::string& options, sys::UniqueFd* fuse_fd) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return MakeFailure(errno, "socketpair", "A socket pair can't be made");
  }
  sys::UniqueFd ours(ends[0]);
  sys::UniqueFd theirs(ends[1]);
  Failure failure = RunFusermount({"-o", options, "--", mountpoint}, theirs.get());
  if (failure.failed()) return failure;
  theirs.Reset();
  return ReceiveDescriptor(ours.get(), fuse_fd);
}

Failure FusermountUnmount(const std::string& mountpoint, bool lazy) {
  std::vector<std::string> arguments{"-u"};
  if (lazy) arguments.push_back("-z");
  arguments.push_back("--");
  arguments.push_back(mountpoint);
  return RunFusermount(std::move(arguments), -1);
}

}  // namespace keeper
