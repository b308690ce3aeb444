// Which processes stand on a device with their working directory.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <memory>

#include "fsop/verbs.h"

namespace fsop {
namespace {

// Without asking the filesystem: a working directory may lie on a network or FUSE filesystem that answers nobody, and
// the device is known to the kernel anyway.
sys::Result<uint64_t> DeviceOf(int folder, const char* path) {
  struct statx stx;
  if (statx(folder, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &stx) != 0) return sys::LastError("statx");
  return uint64_t{makedev(stx.stx_dev_major, stx.stx_dev_minor)};
}

std::string ReadComm(int proc, const std::string& pid) {
  sys::UniqueFd fd(openat(proc, (pid + "/comm").c_str(), O_RDONLY | O_CLOEXEC));
  char comm[64];
  ssize_t got = fd.valid() ? read(fd.get(), comm, sizeof comm) : 0;
  std::string_view text(comm, got > 0 ? static_cast<size_t>(got) : 0);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

bool IsAtOrBelow(int proc, const std::string& cwd, const std::string& folder) {
  char path[PATH_MAX];
  ssize_t length = readlinkat(proc, cwd.c_str(), path, sizeof path);
  if (length < 0) return false;
  std::string_view text(path, static_cast<size_t>(length));
  return text == folder || (text.starts_with(folder) && (folder == "/" || text[folder.size()] == '/'));
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

sys::Result<void> Procs(Roots&, const control::Request& request, control::Answer* answer) {
  uint64_t device = 0;
  if (const std::string* path = request.Find("path"); path != nullptr) {
    auto found = DeviceOf(AT_FDCWD, path->c_str());
    if (!found.ok()) return found.error();
    device = found.value();
  } else {
    auto dev = request.Unsigned("dev");
    if (!dev.ok()) return dev.error();
    device = dev.value();
  }
  const std::string* under = request.Find("under");
  std::unique_ptr<DIR, CloseDirectory> directory(opendir("/proc"));
  if (directory == nullptr) return sys::LastError("opendir");
  int proc = dirfd(directory.get());
  while (const dirent* entry = readdir(directory.get())) {
    uint64_t pid = 0;
    if (!control::ParseUnsigned(entry->d_name, &pid) || pid == static_cast<uint64_t>(getpid())) continue;
    std::string cwd = std::string(entry->d_name) + "/cwd";
    auto found = DeviceOf(proc, cwd.c_str());
    // Gone, or somebody else's whom we may not look at.
    if (!found.ok() || found.value() != device) continue;
    if (under != nullptr && !IsAtOrBelow(proc, cwd, *under)) continue;
    answer->Add("p", std::string(entry->d_name) + "," + ReadComm(proc, entry->d_name));
  }
  return {};
}

}  // namespace fsop
