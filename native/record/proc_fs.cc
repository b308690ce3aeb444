#include "record/proc_fs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace record {
namespace {

constexpr size_t kMaxEnvironBytes = 4u << 20;

}  // namespace

sys::Result<void> ProcFs::Open() {
  proc_.Reset(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!proc_.valid()) return sys::LastError("open(/proc)");
  return {};
}

sys::Result<std::string> ProcFs::Read(uint32_t pid, const char* file, size_t limit) const {
  char path[48];
  snprintf(path, sizeof path, "%u/%s", pid, file);
  const sys::UniqueFd fd(openat(proc_.get(), path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return sys::LastError("openat(/proc)");
  std::string text;
  char buffer[4096];
  while (text.size() < limit) {
    const ssize_t n = read(fd.get(), buffer, std::min(sizeof buffer, limit - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys::LastError("read(/proc)");
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

sys::Result<ProcFs::ProcessStat> ProcFs::Stat(uint32_t tid) const {
  char path[32];
  snprintf(path, sizeof path, "%u/stat", tid);
  const sys::UniqueFd fd(openat(proc_.get(), path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return sys::LastError("openat(/proc stat)");
  char text[1024];
  const ssize_t n = read(fd.get(), text, sizeof text - 1);
  if (n <= 0) return sys::Error{n < 0 ? errno : ESRCH, "read(/proc stat)"};
  text[n] = '\0';
  // "pid (comm) state ppid … starttime(22) …"; comm may hold spaces and parentheses.
  char* open_paren = strchr(text, '(');
  char* close_paren = strrchr(text, ')');
  if (open_paren == nullptr || close_paren == nullptr) return sys::Error{EINVAL, "parse(/proc stat)"};
  ProcessStat stat;
  stat.comm.assign(open_paren + 1, close_paren);
  char* at = close_paren + 1;
  for (int field = 3; at != nullptr && field <= 22; field++) {
    while (*at == ' ') at++;
    if (field == 4) stat.parent = static_cast<uint32_t>(strtoul(at, nullptr, 10));
    if (field == 22) {
      stat.start_ticks = strtoull(at, nullptr, 10);
      return stat;
    }
    at = strchr(at, ' ');
  }
  return sys::Error{EINVAL, "parse(/proc stat)"};
}

sys::Result<uint32_t> ProcFs::ThreadGroup(uint32_t tid) const {
  auto status = Read(tid, "status", 4096);
  if (!status.ok()) return status.error();
  const size_t at = status.value().find("\nTgid:");
  if (at == std::string::npos) return sys::Error{EINVAL, "parse(/proc status)"};
  return static_cast<uint32_t>(strtoul(status.value().c_str() + at + 6, nullptr, 10));
}

std::string ProcFs::Command(uint32_t pid, size_t limit) const {
  auto command = Read(pid, "cmdline", limit);
  return command.ok() ? std::move(command.value()) : std::string();
}

sys::Result<std::string> ProcFs::Environment(uint32_t pid, const std::string& variable) const {
  auto environ = Read(pid, "environ", kMaxEnvironBytes);
  if (!environ.ok()) return environ.error();
  const std::string prefix = variable + "=";
  std::string_view left = environ.value();
  while (!left.empty()) {
    const std::string_view one = left.substr(0, left.find('\0'));
    if (one.starts_with(prefix)) return std::string(one.substr(prefix.size()));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
  }
  return std::string();
}

}  // namespace record
