#include "sys/opener.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "sys/mutate.h"

namespace sys {
namespace {

constexpr int kChannel = 3;

// A number (flags or errno) and, or not, a descriptor.
bool Send(int socket, int number, int fd) {
  iovec data{&number, sizeof(number)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  }
  ssize_t n;
  do {
    n = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(sizeof(number));
}

bool Receive(int socket, int* number, UniqueFd* fd) {
  iovec data{number, sizeof(*number)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t n;
  do {
    n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof(*number))) return false;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int received;
    std::memcpy(&received, CMSG_DATA(header), sizeof(received));
    fd->Reset(received);
  }
  return true;
}

bool WriteFile(const char* path, const std::string& text) {
  UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  return fd.valid() && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

int EnterUserNamespace() {
  std::string uid = std::to_string(geteuid());
  std::string gid = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER) != 0) return errno;
  // A group can be mapped by an ordinary user only after changing groups was given up.
  if (!WriteFile("/proc/self/setgroups", "deny") || !WriteFile("/proc/self/uid_map", uid + " " + uid + " 1") ||
      !WriteFile("/proc/self/gid_map", gid + " " + gid + " 1"))
    return errno;
  return 0;
}

[[noreturn]] void Serve(UniqueFd channel) {
  // Nothing of the engine's may live on in here: not the FUSE device, and not the lifeline.
  if (dup2(channel.Release(), kChannel) != kChannel || close_range(kChannel + 1, ~0u, 0) != 0) _exit(1);
  close(0);
  prctl(PR_SET_NAME, "turnfs-opener");
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  int error = EnterUserNamespace();
  if (!Send(kChannel, error, -1) || error != 0) _exit(1);
  for (;;) {
    int flags = 0;
    UniqueFd path_fd;
    if (!Receive(kChannel, &flags, &path_fd)) _exit(0);
    UniqueFd opened(open(ProcPath(path_fd.get()).text, flags | O_CLOEXEC));
    if (!Send(kChannel, opened.valid() ? 0 : errno, opened.get())) _exit(0);
  }
}

}  // namespace

Result<std::unique_ptr<Opener>> Opener::Start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return LastError("socketpair");
  UniqueFd mine(ends[0]), theirs(ends[1]);
  pid_t child = fork();
  if (child < 0) return LastError("fork");
  if (child == 0) Serve(std::move(theirs));
  theirs.Reset();
  int error = 0;
  UniqueFd none;
  if (!Receive(mine.get(), &error, &none)) return Error{EIO, "opener"};
  if (error != 0) return Error{error, "unshare"};
  return std::unique_ptr<Opener>(new Opener(std::move(mine)));
}

Result<UniqueFd> Opener::Open(int path_fd, int flags) {
  std::lock_guard lock(mutex_);
  int error = 0;
  UniqueFd opened;
  if (!Send(channel_.get(), flags, path_fd) || !Receive(channel_.get(), &error, &opened)) return Error{EIO, "opener"};
  if (error != 0) return Error{error, "open"};
  // It was sent, but this process had no room for another descriptor.
  if (!opened.valid()) return Error{EMFILE, "recvmsg"};
  return opened;
}

}  // namespace sys
