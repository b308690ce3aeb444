#include "keeper/user_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "sys/fd.h"

namespace keeper {
namespace {

sys::Result<void> WriteFile(const char* path, const std::string& text) {
  sys::UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return sys::LastError(path);
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return sys::LastError(path);
  return {};
}

sys::Result<void> Enter() {
  std::string uid = std::to_string(geteuid());
  std::string gid = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER) != 0) return sys::LastError("unshare");
  // Groups can be mapped by their owner only after he gave up changing them.
  if (auto r = WriteFile("/proc/self/setgroups", "deny"); !r.ok()) return r;
  if (auto r = WriteFile("/proc/self/uid_map", uid + " " + uid + " 1"); !r.ok()) return r;
  return WriteFile("/proc/self/gid_map", gid + " " + gid + " 1");
}

}  // namespace

sys::Result<void> EnterUserNamespace() {
  pid_t child = fork();
  if (child < 0) return sys::LastError("fork");
  if (child == 0) {
    auto tried = Enter();
    _exit(tried.ok() ? 0 : tried.error().number);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return sys::LastError("waitpid");
  }
  if (!WIFEXITED(status)) return sys::Error{EIO, "user-namespace"};
  if (WEXITSTATUS(status) != 0) return sys::Error{WEXITSTATUS(status), "user-namespace"};
  return Enter();
}

}  // namespace keeper
