// Every system call with which the engine changes the project. Each takes a gate::Pass, which only the gate makes,
// after the pre-image is in the store.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>

#include "sys/fd.h"
#include "sys/result.h"

namespace gate {
class Pass;
}

namespace sys {

Result<UniqueFd> CreateFile(const gate::Pass&, int dirfd, const char* name, mode_t mode);  // O_EXCL | O_RDWR
Result<UniqueFd> CreateTmpFile(const gate::Pass&, int dirfd, mode_t mode);
Result<void> MakeNode(const gate::Pass&, int dirfd, const char* name, mode_t mode, dev_t rdev);
Result<void> MakeDirectory(const gate::Pass&, int dirfd, const char* name, mode_t mode);
Result<void> MakeSymlink(const gate::Pass&, const char* target, int dirfd, const char* name);
// `path_fd` may be O_PATH and of any kind, a symlink too.
Result<void> Link(const gate::Pass&, int path_fd, int dirfd, const char* name);
Result<void> Unlink(const gate::Pass&, int dirfd, const char* name);
Result<void> RemoveDirectory(const gate::Pass&, int dirfd, const char* name);
Result<void> Rename(const gate::Pass&, int dirfd, const char* name, int to_dirfd, const char* to_name, unsigned flags);

Result<void> Chmod(const gate::Pass&, int path_fd, mode_t mode);
Result<void> Chown(const gate::Pass&, int path_fd, uid_t uid, gid_t gid);
Result<void> SetTimes(const gate::Pass&, int path_fd, const timespec times[2]);
Result<void> SetXattr(const gate::Pass&, int path_fd, const char* name, const void* value, size_t bytes, int flags);
Result<void> RemoveXattr(const gate::Pass&, int path_fd, const char* name);

Result<void> Truncate(const gate::Pass&, int fd, uint64_t size);
Result<void> Allocate(const gate::Pass&, int fd, int mode, uint64_t offset, uint64_t length);
Result<size_t> WriteAll(const gate::Pass&, int fd, const void* from, size_t bytes, uint64_t offset);
Result<size_t> CopyRange(const gate::Pass&, int from_fd, uint64_t from_offset, int fd, uint64_t offset, size_t bytes);

// "/proc/self/fd/N": calls that want a path reach the inode of an O_PATH descriptor by it; it is never followed
// further, so a symlink's own inode is meant.
struct ProcPath {
  explicit ProcPath(int fd);
  char text[32];
};

}  // namespace sys
