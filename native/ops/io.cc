#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "ops/directory_streams.h"
#include "ops/entry.h"
#include "ops/handlers.h"
#include "sys/credentials.h"
#include "sys/mutate.h"

#ifndef FUSE_WRITE_KILL_SUIDGID
#define FUSE_WRITE_KILL_SUIDGID (1 << 2)
#endif

namespace ops {
namespace {

constexpr uint64_t kToTheEnd = UINT64_MAX;

int SyncFd(int fd, bool data_only) { return (data_only ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : errno; }

}  // namespace

int Read(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto in = request.arg<fuse_read_in>();
  if (in.size > reply.capacity()) return EINVAL;
  auto fd = context.inodes.DataFd(*inode, false);
  if (!fd.ok()) return fd.error().number;
  size_t done = 0;
  while (done < in.size) {
    ssize_t n = pread(fd.value().get(), reply.buffer() + done, in.size - done, static_cast<off_t>(in.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && done == 0) return errno;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  reply.SetBytes(done);
  return 0;
}

int Write(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto in = request.arg<fuse_write_in>();
  auto bytes = request.data();
  if (bytes.size() < in.size) return EINVAL;
  // Write-back of mapped pages names no process.
  record::Toucher by = in.write_flags & FUSE_WRITE_CACHE ? record::Toucher{} : TouchedBy(request);
  auto pass = context.gate.MutateBytes(*inode, in.offset, in.size, by);
  if (!pass.ok()) return pass.error().number;
  auto fd = context.inodes.DataFd(*inode, true);
  if (!fd.ok()) return fd.error().number;
  bool kill = in.write_flags & FUSE_WRITE_KILL_SUIDGID;
  // Whether a set-gid bit goes depends on the writer's group too.
  std::optional<sys::ActAs> as;
  if (kill) as.emplace(request.uid(), request.gid(), 0);
  sys::WithoutFsetid without(kill);
  auto written = sys::WriteAll(pass.value(), fd.value().get(), bytes.data(), in.size, in.offset);
  if (!written.ok()) return written.error().number;
  fuse_write_out out{};
  out.size = static_cast<uint32_t>(written.value());
  reply.Send(out);
  return 0;
}

int Fsync(Context& context, const fuse::Request& request, fuse::Reply&) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  // What a program makes durable can be rewound after a power loss: its pre-image goes first.
  auto synced = context.gate.recorder().Sync();
  if (!synced.ok()) return synced.error().number;
  auto fd = context.inodes.DataFd(*inode, false);
  if (!fd.ok()) return fd.error().number;
  return SyncFd(fd.value().get(), request.arg<fuse_fsync_in>().fsync_flags & FUSE_FSYNC_FDATASYNC);
}

int FsyncDir(Context& context, const fuse::Request& request, fuse::Reply&) {
  inode::Ref dir = context.inodes.Find(request.nodeid());
  if (!dir) return ESTALE;
  auto synced = context.gate.recorder().Sync();
  if (!synced.ok()) return synced.error().number;
  auto dirfd = context.inodes.DirectoryFd(*dir);
  if (!dirfd.ok()) return dirfd.error().number;
  auto fd = OpenForListing(dirfd.value().get());
  if (!fd.ok()) return fd.error().number;
  return SyncFd(fd.value().get(), request.arg<fuse_fsync_in>().fsync_flags & FUSE_FSYNC_FDATASYNC);
}

int Fallocate(Context& context, const fuse::Request& request, fuse::Reply&) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto in = request.arg<fuse_fallocate_in>();
  // Collapsing and inserting move everything behind; the other modes change their own range, at most.
  bool shifts = in.mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE);
  auto pass = context.gate.MutateBytes(*inode, in.offset, shifts ? kToTheEnd : in.length, TouchedBy(request));
  if (!pass.ok()) return pass.error().number;
  auto fd = context.inodes.DataFd(*inode, true);
  if (!fd.ok()) return fd.error().number;
  // No flag asks for set-uid clearing here: the caller's own privilege decides, as on the folder.
  sys::ActAs as(request.uid(), request.gid(), 0);
  auto done = sys::Allocate(pass.value(), fd.value().get(), static_cast<int>(in.mode), in.offset, in.length);
  return done.ok() ? 0 : done.error().number;
}

int Lseek(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto in = request.arg<fuse_lseek_in>();
  if (in.whence != SEEK_DATA && in.whence != SEEK_HOLE) return EINVAL;
  auto fd = context.inodes.DataFd(*inode, false);
  if (!fd.ok()) return fd.error().number;
  // Moves the shared descriptor's offset, which nothing here uses.
  off_t at = lseek(fd.value().get(), static_cast<off_t>(in.offset), static_cast<int>(in.whence));
  if (at < 0) return errno;
  fuse_lseek_out out{};
  out.offset = static_cast<uint64_t>(at);
  reply.Send(out);
  return 0;
}

namespace {

// How much was copied, at most `most`; callers ask again for the rest.
int Copy(Context& context, const fuse::Request& request, uint64_t most, uint64_t* copied) {
  auto in = request.arg<fuse_copy_file_range_in>();
  inode::Ref from = context.inodes.Find(request.nodeid());
  inode::Ref to = context.inodes.Find(in.nodeid_out);
  if (!from || !to) return ESTALE;
  auto pass = context.gate.MutateBytes(*to, in.off_out, in.len, TouchedBy(request));
  if (!pass.ok()) return pass.error().number;
  auto from_fd = context.inodes.DataFd(*from, false);
  if (!from_fd.ok()) return from_fd.error().number;
  auto to_fd = context.inodes.DataFd(*to, true);
  if (!to_fd.ok()) return to_fd.error().number;
  size_t length = static_cast<size_t>(in.len < most ? in.len : most);
  sys::ActAs as(request.uid(), request.gid(), 0);  // as in Fallocate
  auto done = sys::CopyRange(pass.value(), from_fd.value().get(), in.off_in, to_fd.value().get(), in.off_out, length);
  if (!done.ok()) return done.error().number;
  *copied = done.value();
  return 0;
}

}  // namespace

int CopyFileRange(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  uint64_t copied = 0;
  if (int error = Copy(context, request, 1u << 30, &copied)) return error;
  fuse_write_out out{};
  out.size = static_cast<uint32_t>(copied);
  reply.Send(out);
  return 0;
}

int CopyFileRange64(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  uint64_t copied = 0;
  if (int error = Copy(context, request, SSIZE_MAX, &copied)) return error;
  reply.Send(copied);
  return 0;
}

}  // namespace ops
