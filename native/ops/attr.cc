#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "ops/entry.h"
#include "ops/handlers.h"
#include "session/truncate_watch.h"
#include "sys/credentials.h"
#include "sys/mutate.h"

namespace ops {
namespace {

#ifndef FATTR_KILL_SUIDGID
#define FATTR_KILL_SUIDGID (1 << 11)
#endif

int SendAttr(Context& context, inode::Inode& inode, fuse::Reply& reply) {
  struct statx st {};
  if (int error = Stat(context, inode, &st)) return error;
  fuse_attr_out out{};
  out.attr_valid = ValidSeconds(context, inode.realm() == inode::Realm::kStore);
  FillAttr(context, inode, st, &out.attr);
  reply.Send(out);
  return 0;
}

timespec WantedTime(uint32_t valid, uint32_t set, uint32_t now, uint64_t seconds, uint32_t nanoseconds) {
  if (valid & now) return {0, UTIME_NOW};
  if (valid & set) return {static_cast<time_t>(seconds), static_cast<long>(nanoseconds)};
  return {0, UTIME_OMIT};
}

// Size first (it sets times), then owner (it clears set-uid), mode, times.
int Apply(Context& context, const fuse::Request& request, const gate::Pass& pass, inode::Inode& inode) {
  auto in = request.arg<fuse_setattr_in>();
  if (in.valid & FATTR_SIZE) {
    auto fd = context.inodes.DataFd(inode, true);
    if (!fd.ok()) return fd.error().number;
    bool kill = in.valid & FATTR_KILL_SUIDGID;
    // Whether a set-gid bit goes depends on the caller's group too.
    std::optional<sys::ActAs> as;
    if (kill) as.emplace(request.uid(), request.gid(), 0);
    sys::WithoutFsetid without(kill);
    auto done = sys::Truncate(pass, fd.value().get(), in.size);
    if (!done.ok()) return done.error().number;
  }
  auto fd = context.inodes.PathFd(inode);
  if (!fd.ok()) return fd.error().number;
  constexpr uint32_t kTimes = FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW | FATTR_MTIME_NOW;
  // Nothing at all is chown(path, -1, -1), which moves ctime.
  bool nothing = (in.valid & (FATTR_SIZE | FATTR_UID | FATTR_GID | FATTR_MODE | kTimes)) == 0;
  if (nothing || (in.valid & (FATTR_UID | FATTR_GID))) {
    uid_t uid = in.valid & FATTR_UID ? in.uid : static_cast<uid_t>(-1);
    gid_t gid = in.valid & FATTR_GID ? in.gid : static_cast<gid_t>(-1);
    auto done = sys::Chown(pass, fd.value().get(), uid, gid);
    if (!done.ok()) return done.error().number;
  }
  if (in.valid & FATTR_MODE) {
    auto done = sys::Chmod(pass, fd.value().get(), in.mode & 07777);
    if (!done.ok()) return done.error().number;
  }
  if (in.valid & kTimes) {
    timespec times[2] = {WantedTime(in.valid, FATTR_ATIME, FATTR_ATIME_NOW, in.atime, in.atimensec),
                         WantedTime(in.valid, FATTR_MTIME, FATTR_MTIME_NOW, in.mtime, in.mtimensec)};
    auto done = sys::SetTimes(pass, fd.value().get(), times);
    if (!done.ok()) return done.error().number;
  }
  return 0;
}

}  // namespace

int GetAttr(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  return SendAttr(context, *inode, reply);
}

int SetAttr(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto in = request.arg<fuse_setattr_in>();
  bool sized = in.valid & FATTR_SIZE;
  // The barrier's flush must know: pages of an inode whose size is being set are not written back meanwhile.
  session::TruncateWatch::Span watch(sized ? &context.truncates : nullptr, request.nodeid());
  {
    auto pass = sized ? context.gate.MutateBytes(*inode, in.size, UINT64_MAX, TouchedBy(request))
                      : context.gate.MutateAttrs(*inode, TouchedBy(request));
    if (!pass.ok()) return pass.error().number;
    if (int error = Apply(context, request, pass.value(), *inode)) return error;
  }
  return SendAttr(context, *inode, reply);
}

int ReadLink(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto fd = context.inodes.PathFd(*inode);
  if (!fd.ok()) return fd.error().number;
  ssize_t n = readlinkat(fd.value().get(), "", reinterpret_cast<char*>(reply.buffer()), 4096);
  if (n < 0) return errno;
  reply.SetBytes(static_cast<size_t>(n));
  return 0;
}

int StatFs(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto fd = context.inodes.PathFd(*inode);
  if (!fd.ok()) return fd.error().number;
  struct statfs st {};
  if (fstatfs(fd.value().get(), &st) != 0) return errno;
  fuse_statfs_out out{};
  out.st.blocks = st.f_blocks;
  out.st.bfree = st.f_bfree;
  out.st.bavail = st.f_bavail;
  out.st.files = st.f_files;
  out.st.ffree = st.f_ffree;
  out.st.bsize = static_cast<uint32_t>(st.f_bsize);
  out.st.namelen = static_cast<uint32_t>(st.f_namelen);
  out.st.frsize = static_cast<uint32_t>(st.f_frsize);
  reply.Send(out);
  return 0;
}

namespace {

// Protocol 7.39 (Linux 6.6); the system's header may be older.
struct StatxIn {
  uint32_t getattr_flags, reserved;
  uint64_t fh;
  uint32_t sx_flags, sx_mask;
};
struct StatxTime {
  int64_t seconds;
  uint32_t nanoseconds;
  int32_t reserved;
};
struct StatxOut {
  uint64_t attr_valid;
  uint32_t attr_valid_nsec, flags;
  uint64_t spare[2];
  uint32_t mask, blksize;
  uint64_t attributes;
  uint32_t nlink, uid, gid;
  uint16_t mode, spare0;
  uint64_t ino, size, blocks, attributes_mask;
  StatxTime atime, btime, ctime, mtime;
  uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
  uint64_t spare2[14];
};
static_assert(sizeof(StatxOut) == 32 + 256);

StatxTime Time(const statx_timestamp& t) { return {t.tv_sec, t.tv_nsec, 0}; }

}  // namespace

int Statx(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  struct statx st {};
  if (int error = Stat(context, *inode, &st)) return error;
  StatxOut out{};
  out.attr_valid = ValidSeconds(context, inode->realm() == inode::Realm::kStore);
  out.mask = st.stx_mask & kStatxMask;
  out.blksize = st.stx_blksize;
  out.nlink = VisibleLinks(context, *inode, st);
  out.uid = st.stx_uid;
  out.gid = st.stx_gid;
  out.mode = st.stx_mode;
  out.ino = st.stx_ino;
  out.size = st.stx_size;
  out.blocks = st.stx_blocks;
  out.atime = Time(st.stx_atime);
  out.btime = Time(st.stx_btime);
  out.ctime = Time(st.stx_ctime);
  out.mtime = Time(st.stx_mtime);
  out.rdev_major = st.stx_rdev_major;
  out.rdev_minor = st.stx_rdev_minor;
  reply.Send(out);
  return 0;
}

}  // namespace ops
