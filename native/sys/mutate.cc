#include "sys/mutate.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace sys {
namespace {

Result<void> Done(int result, const char* where) {
  if (result < 0) return LastError(where);
  return {};
}

}  // namespace

ProcPath::ProcPath(int fd) { snprintf(text, sizeof(text), "/proc/self/fd/%d", fd); }

Result<UniqueFd> CreateFile(const gate::Pass&, int dirfd, const char* name, mode_t mode) {
  int fd = openat(dirfd, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return LastError("openat");
  return UniqueFd(fd);
}

Result<UniqueFd> CreateTmpFile(const gate::Pass&, int dirfd, mode_t mode) {
  int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (fd < 0) return LastError("openat");
  return UniqueFd(fd);
}

Result<void> MakeNode(const gate::Pass&, int dirfd, const char* name, mode_t mode, dev_t rdev) {
  return Done(mknodat(dirfd, name, mode, rdev), "mknodat");
}

Result<void> MakeDirectory(const gate::Pass&, int dirfd, const char* name, mode_t mode) {
  return Done(mkdirat(dirfd, name, mode), "mkdirat");
}

Result<void> MakeSymlink(const gate::Pass&, const char* target, int dirfd, const char* name) {
  return Done(symlinkat(target, dirfd, name), "symlinkat");
}

Result<void> Link(const gate::Pass&, int path_fd, int dirfd, const char* name) {
  // AT_EMPTY_PATH would want CAP_DAC_READ_SEARCH (before Linux 6.10).
  return Done(linkat(AT_FDCWD, ProcPath(path_fd).text, dirfd, name, AT_SYMLINK_FOLLOW), "linkat");
}

Result<void> Unlink(const gate::Pass&, int dirfd, const char* name) {
  return Done(unlinkat(dirfd, name, 0), "unlinkat");
}

Result<void> RemoveDirectory(const gate::Pass&, int dirfd, const char* name) {
  return Done(unlinkat(dirfd, name, AT_REMOVEDIR), "unlinkat");
}

Result<void> Rename(const gate::Pass&, int dirfd, const char* name, int to_dirfd, const char* to_name, unsigned flags) {
  return Done(static_cast<int>(syscall(SYS_renameat2, dirfd, name, to_dirfd, to_name, flags)), "renameat2");
}

Result<void> Chmod(const gate::Pass&, int path_fd, mode_t mode) {
  return Done(fchmodat(AT_FDCWD, ProcPath(path_fd).text, mode, 0), "fchmodat");
}

Result<void> Chown(const gate::Pass&, int path_fd, uid_t uid, gid_t gid) {
  return Done(fchownat(path_fd, "", uid, gid, AT_EMPTY_PATH), "fchownat");
}

Result<void> SetTimes(const gate::Pass&, int path_fd, const timespec times[2]) {
  return Done(utimensat(AT_FDCWD, ProcPath(path_fd).text, times, 0), "utimensat");
}

Result<void> SetXattr(const gate::Pass&, int path_fd, const char* name, const void* value, size_t bytes, int flags) {
  return Done(setxattr(ProcPath(path_fd).text, name, value, bytes, flags), "setxattr");
}

Result<void> RemoveXattr(const gate::Pass&, int path_fd, const char* name) {
  return Done(removexattr(ProcPath(path_fd).text, name), "removexattr");
}

Result<void> Truncate(const gate::Pass&, int fd, uint64_t size) {
  return Done(ftruncate(fd, static_cast<off_t>(size)), "ftruncate");
}

Result<void> Allocate(const gate::Pass&, int fd, int mode, uint64_t offset, uint64_t length) {
  return Done(fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(length)), "fallocate");
}

Result<size_t> WriteAll(const gate::Pass&, int fd, const void* from, size_t bytes, uint64_t offset) {
  const char* next = static_cast<const char*>(from);
  size_t done = 0;
  while (done < bytes) {
    ssize_t n = pwrite(fd, next + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    // What was written counts, as in write(2): the next call will say why it went no further.
    if (n < 0 && done == 0) return LastError("pwrite");
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

Result<size_t> CopyRange(const gate::Pass&, int from_fd, uint64_t from_offset, int fd, uint64_t offset, size_t bytes) {
  loff_t from = static_cast<loff_t>(from_offset);
  loff_t to = static_cast<loff_t>(offset);
  ssize_t n = copy_file_range(from_fd, &from, fd, &to, bytes, 0);
  if (n < 0) return LastError("copy_file_range");
  return static_cast<size_t>(n);
}

}  // namespace sys
