// Finding an object again by its file handle.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <cstring>

#include "fsop/verbs.h"

namespace fsop {
namespace {

// readlink of /proc/self/fd/N.
sys::Result<std::string> PathOf(int fd) {
  char path[PATH_MAX];
  ssize_t length = readlink(DescriptorPath(fd).c_str(), path, sizeof path);
  if (length < 0) return sys::LastError("readlink");
  if (static_cast<size_t>(length) == sizeof path) return sys::Error{ENAMETOOLONG, "readlink"};
  return std::string(path, static_cast<size_t>(length));
}

// The handle as in Bind records: i32 handle type, then the bytes.
sys::Result<sys::UniqueFd> OpenByHandle(int mount_fd, const std::string& bytes) {
  int32_t type = 0;
  if (bytes.size() <= sizeof type || bytes.size() > sizeof type + MAX_HANDLE_SZ) return sys::Error{EINVAL, "handle"};
  alignas(file_handle) char storage[sizeof(file_handle) + MAX_HANDLE_SZ];
  auto* handle = reinterpret_cast<file_handle*>(storage);
  memcpy(&type, bytes.data(), sizeof type);
  handle->handle_type = type;
  handle->handle_bytes = static_cast<unsigned>(bytes.size() - sizeof type);
  memcpy(handle->f_handle, bytes.data() + sizeof type, handle->handle_bytes);
  sys::UniqueFd fd(open_by_handle_at(mount_fd, handle, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return sys::LastError("open_by_handle_at");
  return fd;
}

}  // namespace

sys::Result<void> OpenHandle(Roots& roots, const control::Request& request, control::Answer* answer) {
  auto root = roots.Get(request, "root");
  if (!root.ok()) return root.error();
  auto bytes = request.Text("handle");
  if (!bytes.ok()) return bytes.error();
  int root_fd = root.value()->fd.get();
  auto object = OpenByHandle(root_fd, bytes.value());
  if (!object.ok()) return object.error();
  struct stat st;
  if (fstat(object.value().get(), &st) != 0) return sys::LastError("fstat");
  if (st.st_nlink == 0) return sys::Error{ESTALE, "nlink"};
  auto root_path = PathOf(root_fd);
  if (!root_path.ok()) return root_path.error();
  auto path = PathOf(object.value().get());
  if (!path.ok()) return path.error();

  std::string prefix = root_path.value() == "/" ? "/" : root_path.value() + "/";
  std::string relative;
  if (path.value().starts_with(prefix)) {
    relative = path.value().substr(prefix.size());
  } else if (path.value() != root_path.value()) {
    // Alive, but somewhere else; or a file that nobody has looked up since it left the cache, whose path the kernel
    // can't tell from the handle alone.
    return sys::Error{ENOENT, "outside-root"};
  }
  // What readlink says is a text (it may end in " (deleted)"): believe it only when the same object is there.
  auto again = OpenBelow(root_fd, relative, O_PATH);
  struct stat found;
  if (!again.ok() || fstat(again.value().get(), &found) != 0 || found.st_dev != st.st_dev ||
      found.st_ino != st.st_ino) {
    return sys::Error{ENOENT, "path-unknown"};
  }
  answer->Add("path", relative);
  return {};
}

}  // namespace fsop
