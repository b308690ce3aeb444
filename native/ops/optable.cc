#include "ops/optable.h"

#include "ops/handlers.h"

namespace ops {
namespace {

// Newer than some systems' <linux/fuse.h>.
constexpr uint32_t kStatx = 52;            // protocol 7.39, Linux 6.6
constexpr uint32_t kCopyFileRange64 = 53;  // protocol 7.45, Linux 6.18: the answer has 64 bits

// INIT, DESTROY and INTERRUPT belong to the connection (fuse/device.cc).
constexpr Row kRows[] = {
    {FUSE_LOOKUP, "LOOKUP", 0, 1, false, Touch::kReads, Lookup},
    {FUSE_FORGET, "FORGET", sizeof(fuse_forget_in), 0, false, Touch::kReads, Forget},
    {FUSE_BATCH_FORGET, "BATCH_FORGET", sizeof(fuse_batch_forget_in), 0, false, Touch::kReads, BatchForget},
    {FUSE_GETATTR, "GETATTR", sizeof(fuse_getattr_in), 0, false, Touch::kReads, GetAttr},
    {FUSE_SETATTR, "SETATTR", sizeof(fuse_setattr_in), 0, false, Touch::kObjectBytes, SetAttr},
    {kStatx, "STATX", 24, 0, false, Touch::kReads, Statx},
    {FUSE_READLINK, "READLINK", 0, 0, false, Touch::kReads, ReadLink},
    {FUSE_STATFS, "STATFS", 0, 0, false, Touch::kReads, StatFs},
    {FUSE_SYMLINK, "SYMLINK", 0, 2, true, Touch::kEntry, Symlink},
    {FUSE_MKNOD, "MKNOD", sizeof(fuse_mknod_in), 1, false, Touch::kEntry, MkNod},
    {FUSE_MKDIR, "MKDIR", sizeof(fuse_mkdir_in), 1, false, Touch::kEntry, MkDir},
    {FUSE_CREATE, "CREATE", sizeof(fuse_create_in), 1, false, Touch::kEntry, Create},
    // The kernel's name for what has none is "/".
    {FUSE_TMPFILE, "TMPFILE", sizeof(fuse_create_in), 1, true, Touch::kEntry, TmpFile},
    {FUSE_LINK, "LINK", sizeof(fuse_link_in), 1, false, Touch::kEntry, Link},
    {FUSE_UNLINK, "UNLINK", 0, 1, false, Touch::kEntry, Unlink},
    {FUSE_RMDIR, "RMDIR", 0, 1, false, Touch::kEntry, RmDir},
    {FUSE_RENAME, "RENAME", sizeof(fuse_rename_in), 2, false, Touch::kEntry, Rename},
    {FUSE_RENAME2, "RENAME2", sizeof(fuse_rename2_in), 2, false, Touch::kEntry, Rename2},
    {FUSE_OPEN, "OPEN", sizeof(fuse_open_in), 0, false, Touch::kReads, Open},
    {FUSE_RELEASE, "RELEASE", sizeof(fuse_release_in), 0, false, Touch::kReads, Release},
    {FUSE_READ, "READ", sizeof(fuse_read_in), 0, false, Touch::kReads, Read},
    {FUSE_WRITE, "WRITE", sizeof(fuse_write_in), 0, false, Touch::kObjectBytes, Write},
    {FUSE_FSYNC, "FSYNC", sizeof(fuse_fsync_in), 0, false, Touch::kReads, Fsync},
    {FUSE_FSYNCDIR, "FSYNCDIR", sizeof(fuse_fsync_in), 0, false, Touch::kReads, FsyncDir},
    {FUSE_FALLOCATE, "FALLOCATE", sizeof(fuse_fallocate_in), 0, false, Touch::kObjectBytes, Fallocate},
    {FUSE_LSEEK, "LSEEK", sizeof(fuse_lseek_in), 0, false, Touch::kReads, Lseek},
    {FUSE_COPY_FILE_RANGE, "COPY_FILE_RANGE", sizeof(fuse_copy_file_range_in), 0, false, Touch::kObjectBytes,
     CopyFileRange},
    {kCopyFileRange64, "COPY_FILE_RANGE_64", sizeof(fuse_copy_file_range_in), 0, false, Touch::kObjectBytes,
     CopyFileRange64},
    {FUSE_OPENDIR, "OPENDIR", sizeof(fuse_open_in), 0, false, Touch::kReads, OpenDir},
    {FUSE_READDIR, "READDIR", sizeof(fuse_read_in), 0, false, Touch::kReads, ReadDir},
    {FUSE_READDIRPLUS, "READDIRPLUS", sizeof(fuse_read_in), 0, false, Touch::kReads, ReadDirPlus},
    {FUSE_RELEASEDIR, "RELEASEDIR", sizeof(fuse_release_in), 0, false, Touch::kReads, ReleaseDir},
    {FUSE_SETXATTR, "SETXATTR", sizeof(fuse_setxattr_in), 1, true, Touch::kObjectAttrs, SetXattr},
    {FUSE_GETXATTR, "GETXATTR", sizeof(fuse_getxattr_in), 1, true, Touch::kReads, GetXattr},
    {FUSE_LISTXATTR, "LISTXATTR", sizeof(fuse_getxattr_in), 0, false, Touch::kReads, ListXattr},
    {FUSE_REMOVEXATTR, "REMOVEXATTR", 0, 1, true, Touch::kObjectAttrs, RemoveXattr},
    // Known and refused: permissions and locks are the kernel's here, and what an ioctl changes could not be captured.
    {FUSE_ACCESS, "ACCESS", 0, 0, false, Touch::kRefused, Refuse},
    {FUSE_FLUSH, "FLUSH", 0, 0, false, Touch::kRefused, Refuse},
    {FUSE_IOCTL, "IOCTL", 0, 0, false, Touch::kRefused, RefuseIoctl},
    {FUSE_POLL, "POLL", 0, 0, false, Touch::kRefused, Refuse},
    {FUSE_BMAP, "BMAP", 0, 0, false, Touch::kRefused, Refuse},
    {FUSE_SYNCFS, "SYNCFS", 0, 0, false, Touch::kRefused, Refuse},
};

}  // namespace

const Row* FindRow(uint32_t opcode) {
  static constexpr uint32_t kMost = 64;
  static const auto* index = [] {
    static const Row* rows[kMost] = {};
    for (const Row& row : kRows)
      if (row.opcode < kMost) rows[row.opcode] = &row;
    return rows;
  }();
  return opcode < kMost ? index[opcode] : nullptr;
}

}  // namespace ops
