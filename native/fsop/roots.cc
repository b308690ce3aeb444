#include "fsop/roots.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace fsop {
namespace {

// openat2 answers EAGAIN when something was renamed while it looked at a `..`.
constexpr int kMaxAgain = 32;

bool IsRootItself(std::string_view path) { return path.empty() || path == "."; }

sys::Result<void> CheckPath(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return sys::Error{EINVAL, "path"};
  if (!path.empty() && path.front() == '/') return sys::Error{EXDEV, "path"};
  return {};
}

struct RootAndPath {
  const Root* root;
  std::string path;
};

sys::Result<RootAndPath> FindRootAndPath(const Roots& roots, const control::Request& request, const char* root_key,
                                         const char* path_key) {
  auto root = roots.Get(request, root_key);
  if (!root.ok()) return root.error();
  auto path = request.Text(path_key);
  if (!path.ok()) return path.error();
  auto checked = CheckPath(path.value());
  if (!checked.ok()) return checked.error();
  return RootAndPath{root.value(), std::move(path.value())};
}

sys::Result<sys::UniqueFd> OpenStep(int folder, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(static_cast<unsigned>(flags | O_CLOEXEC | O_NOFOLLOW));
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // RESOLVE_NO_SYMLINKS would refuse a symlink as the last name too, except together with O_PATH | O_NOFOLLOW.
  for (int again = 0;; again++) {
    long fd = syscall(SYS_openat2, folder, IsRootItself(path) ? "." : path.c_str(), &how, sizeof how);
    if (fd >= 0) return sys::UniqueFd(static_cast<int>(fd));
    if (errno != EINTR && (errno != EAGAIN || again == kMaxAgain)) return sys::LastError("openat2");
  }
}

}  // namespace

sys::Result<void> Roots::Open(const std::string& id, const std::string& path) {
  if (path.find('\0') != std::string::npos) return sys::Error{EINVAL, "path"};
  Root root;
  root.fd.Reset(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.fd.valid() && errno == EACCES) root.fd.Reset(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.fd.valid()) return sys::LastError("open");
  struct stat st;
  if (fstat(root.fd.get(), &st) != 0) return sys::LastError("fstat");
  root.dev = st.st_dev;
  roots_.insert_or_assign(id, std::move(root));
  return {};
}

sys::Result<void> Roots::Close(const std::string& id) {
  if (roots_.erase(id) == 0) return sys::Error{EBADF, "root"};
  return {};
}

sys::Result<const Root*> Roots::Get(const control::Request& request, const char* key) const {
  const std::string* id = request.Find(key);
  if (id == nullptr) return sys::Error{EINVAL, key};
  auto found = roots_.find(*id);
  if (found == roots_.end()) return sys::Error{EBADF, key};
  return &found->second;
}

sys::Result<sys::UniqueFd> OpenBelow(int folder, const std::string& path, int flags) {
  // A tree can be deeper than one path may be long: such a path goes in steps, each confined below the one before it.
  sys::UniqueFd step;
  size_t begin = 0;
  while (path.size() - begin >= PATH_MAX) {
    size_t slash = path.rfind('/', begin + PATH_MAX - 1);
    if (slash == std::string::npos || slash <= begin) return sys::Error{ENAMETOOLONG, "path"};
    auto next = OpenStep(step.valid() ? step.get() : folder, path.substr(begin, slash - begin), O_PATH | O_DIRECTORY);
    if (!next.ok()) return next.error();
    step = std::move(next.value());
    begin = slash + 1;
  }
  return OpenStep(step.valid() ? step.get() : folder, begin == 0 ? path : path.substr(begin), flags);
}

std::string DescriptorPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

sys::Result<sys::UniqueFd> Reopen(int object, int flags) {
  std::string path = DescriptorPath(object);
  bool reads = (flags & O_ACCMODE) == O_RDONLY;
  sys::UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC | (reads ? O_NOATIME : 0)));
  // O_NOATIME is the owner's privilege.
  if (!fd.valid() && errno == EPERM && reads) fd.Reset(open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.valid()) return sys::LastError("open");
  return fd;
}

sys::Result<sys::UniqueFd> OpenObject(const Roots& roots, const control::Request& request, const char* root_key,
                                      const char* path_key) {
  auto where = FindRootAndPath(roots, request, root_key, path_key);
  if (!where.ok()) return where.error();
  return OpenBelow(where.value().root->fd.get(), where.value().path, O_PATH);
}

sys::Result<sys::UniqueFd> OpenFile(const Roots& roots, const control::Request& request, int flags,
                                    const char* root_key, const char* path_key) {
  auto object = OpenObject(roots, request, root_key, path_key);
  if (!object.ok()) return object.error();
  struct stat st;
  if (fstat(object.value().get(), &st) != 0) return sys::LastError("fstat");
  if (S_ISDIR(st.st_mode)) return sys::Error{EISDIR, path_key};
  if (S_ISLNK(st.st_mode)) return sys::Error{ELOOP, path_key};
  if (!S_ISREG(st.st_mode)) return sys::Error{EINVAL, path_key};
  return Reopen(object.value().get(), flags);
}

sys::Result<Place> OpenPlace(const Roots& roots, const control::Request& request, const char* root_key,
                             const char* path_key) {
  auto where = FindRootAndPath(roots, request, root_key, path_key);
  if (!where.ok()) return where.error();
  const std::string& path = where.value().path;
  size_t slash = path.rfind('/');
  std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
  Place place;
  place.name = slash == std::string::npos ? path : path.substr(slash + 1);
  // "." and ".." name no entry, and a path that ends in a slash has no last name.
  if (place.name.empty() || place.name == "." || place.name == "..") return sys::Error{EINVAL, path_key};
  auto folder = OpenBelow(where.value().root->fd.get(), parent, O_PATH | O_DIRECTORY);
  if (!folder.ok()) return folder.error();
  place.folder = std::move(folder.value());
  return place;
}

}  // namespace fsop
