// Looking without changing: attributes, names, where the data is.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <cstring>
#include <memory>

#include "fsop/verbs.h"
#include "fsop/xattr.h"

namespace fsop {
namespace {

constexpr size_t kDirectoryBufferBytes = 128u << 10;

int64_t Nanoseconds(const statx_timestamp& time) { return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec; }

sys::Result<std::string> ReadLink(int object) {
  char target[PATH_MAX];
  ssize_t length = readlinkat(object, "", target, sizeof target);
  if (length < 0) return sys::LastError("readlinkat");
  return std::string(target, static_cast<size_t>(length));
}

sys::Result<void> AddXattrs(int object, control::Answer* answer) {
  auto names = ListXattrs(object);
  if (!names.ok()) return names.error();
  for (const std::string& name : names.value()) {
    auto value = GetXattr(object, name);
    if (!value.ok()) {
      // Removed since it was listed, or readable for the privileged only: then it can't be restored by us either.
      int error = value.error().number;
      if (error == ENODATA || error == EPERM || error == EACCES) continue;
      return value.error();
    }
    std::string key = "x.";
    control::AppendHex(&key, name);
    answer->Add(key, value.value());
  }
  return {};
}

}  // namespace

sys::Result<void> OpenRoot(Roots& roots, const control::Request& request, control::Answer*) {
  auto id = request.Text("id");
  if (!id.ok()) return id.error();
  auto path = request.Text("path");
  if (!path.ok()) return path.error();
  return roots.Open(id.value(), path.value());
}

sys::Result<void> CloseRoot(Roots& roots, const control::Request& request, control::Answer*) {
  auto id = request.Text("id");
  if (!id.ok()) return id.error();
  return roots.Close(id.value());
}

sys::Result<void> Stat(Roots& roots, const control::Request& request, control::Answer* answer) {
  auto with_xattrs = request.UnsignedOr("xattrs", 0, 1);
  if (!with_xattrs.ok()) return with_xattrs.error();
  auto root = roots.Get(request, "root");
  if (!root.ok()) return root.error();
  auto object = OpenObject(roots, request);
  if (!object.ok()) return object.error();
  int fd = object.value().get();
  struct statx stx;
  if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &stx) != 0) {
    return sys::LastError("statx");
  }
  uint64_t dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
  answer->AddUnsigned("mode", stx.stx_mode);
  answer->AddUnsigned("uid", stx.stx_uid);
  answer->AddUnsigned("gid", stx.stx_gid);
  answer->AddUnsigned("size", stx.stx_size);
  answer->AddSigned("mtime", Nanoseconds(stx.stx_mtime));
  answer->AddSigned("ctime", Nanoseconds(stx.stx_ctime));
  answer->AddSigned("birth", (stx.stx_mask & STATX_BTIME) ? Nanoseconds(stx.stx_btime) : 0);
  answer->AddUnsigned("ino", stx.stx_ino);
  answer->AddUnsigned("dev", dev == root.value()->dev ? 0 : dev);
  answer->AddUnsigned("nlink", stx.stx_nlink);
  answer->AddUnsigned("rdev", makedev(stx.stx_rdev_major, stx.stx_rdev_minor));
  if (with_xattrs.value() == 0) return {};
  if (S_ISLNK(stx.stx_mode)) {
    auto target = ReadLink(fd);
    if (!target.ok()) return target.error();
    answer->Add("target", target.value());
  }
  return AddXattrs(fd, answer);
}

sys::Result<void> List(Roots& roots, const control::Request& request, control::Answer* answer) {
  auto object = OpenObject(roots, request);
  if (!object.ok()) return object.error();
  // O_DIRECTORY: reopening a FIFO for reading would wait for a writer.
  auto folder = Reopen(object.value().get(), O_RDONLY | O_DIRECTORY);
  if (!folder.ok()) return folder.error();
  auto buffer = std::make_unique<char[]>(kDirectoryBufferBytes);
  for (;;) {
    ssize_t got = getdents64(folder.value().get(), buffer.get(), kDirectoryBufferBytes);
    if (got < 0) return sys::LastError("getdents64");
    if (got == 0) return {};
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.get() + at);
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) answer->Add("n", entry->d_name);
      at += entry->d_reclen;
    }
  }
}

sys::Result<void> Extents(Roots& roots, const control::Request& request, control::Answer* answer) {
  auto file = OpenFile(roots, request, O_RDONLY);
  if (!file.ok()) return file.error();
  int fd = file.value().get();
  for (off_t at = 0;;) {
    off_t begin = lseek(fd, at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return {};  // only a hole is left, or nothing
    if (begin < 0) return sys::LastError("lseek");
    off_t end = lseek(fd, begin, SEEK_HOLE);
    if (end < 0 && errno == ENXIO) return {};  // truncated meanwhile
    if (end < 0) return sys::LastError("lseek");
    answer->Add("data", std::to_string(begin) + "," + std::to_string(end - begin));
    at = end;
  }
}

}  // namespace fsop
