#include <sys/xattr.h>

#include <cerrno>
#include <string_view>

#include "ops/entry.h"
#include "ops/handlers.h"
#include "sys/credentials.h"
#include "sys/mutate.h"

namespace ops {
namespace {

constexpr size_t kMaxListBytes = 65536;  // XATTR_LIST_MAX

int SendSize(size_t bytes, fuse::Reply& reply) {
  fuse_getxattr_out out{};
  out.size = static_cast<uint32_t>(bytes);
  reply.Send(out);
  return 0;
}

// An ordinary caller does not see trusted.* names; the engine, as root, would.
size_t WithoutTrusted(std::byte* list, size_t bytes) {
  char* names = reinterpret_cast<char*>(list);
  size_t kept = 0;
  for (size_t at = 0; at < bytes;) {
    std::string_view name(names + at, strnlen(names + at, bytes - at));
    size_t step = name.size() + 1;
    if (at + step > bytes) break;
    if (!name.starts_with("trusted.")) {
      memmove(names + kept, names + at, step);
      kept += step;
    }
    at += step;
  }
  return kept;
}

}  // namespace

int SetXattr(Context& context, const fuse::Request& request, fuse::Reply&) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto in = request.arg<fuse_setxattr_in>();
  auto value = request.data();
  if (value.size() < in.size) return EINVAL;
  auto pass = context.gate.MutateAttrs(*inode, TouchedBy(request));
  if (!pass.ok()) return pass.error().number;
  auto fd = context.inodes.PathFd(*inode);
  if (!fd.ok()) return fd.error().number;
  bool kill_sgid = in.setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID;
  auto set = [&] {
    // set-gid goes with an ACL from a caller outside the file's group: as a group that is no file's, without
    // CAP_FSETID.
    constexpr gid_t kNobodysGroup = static_cast<gid_t>(-2);
    if (!kill_sgid)
      return sys::SetXattr(pass.value(), fd.value().get(), request.name(0), value.data(), in.size,
                           static_cast<int>(in.flags));
    sys::ActAs as(request.uid(), kNobodysGroup, 0);
    sys::WithoutFsetid without(true);
    return sys::SetXattr(pass.value(), fd.value().get(), request.name(0), value.data(), in.size,
                         static_cast<int>(in.flags));
  }();
  return set.ok() ? 0 : set.error().number;
}

int RemoveXattr(Context& context, const fuse::Request& request, fuse::Reply&) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto pass = context.gate.MutateAttrs(*inode, TouchedBy(request));
  if (!pass.ok()) return pass.error().number;
  auto fd = context.inodes.PathFd(*inode);
  if (!fd.ok()) return fd.error().number;
  auto done = sys::RemoveXattr(pass.value(), fd.value().get(), request.name(0));
  return done.ok() ? 0 : done.error().number;
}

int GetXattr(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto in = request.arg<fuse_getxattr_in>();
  if (in.size > reply.capacity()) return E2BIG;
  auto fd = context.inodes.PathFd(*inode);
  if (!fd.ok()) return fd.error().number;
  ssize_t n =
      getxattr(sys::ProcPath(fd.value().get()).text, request.name(0), in.size == 0 ? nullptr : reply.buffer(), in.size);
  if (n < 0) return errno;
  if (in.size == 0) return SendSize(static_cast<size_t>(n), reply);
  reply.SetBytes(static_cast<size_t>(n));
  return 0;
}

int ListXattr(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref inode = context.inodes.Find(request.nodeid());
  if (!inode) return ESTALE;
  auto in = request.arg<fuse_getxattr_in>();
  auto fd = context.inodes.PathFd(*inode);
  if (!fd.ok()) return fd.error().number;
  ssize_t n = listxattr(sys::ProcPath(fd.value().get()).text, reinterpret_cast<char*>(reply.buffer()), kMaxListBytes);
  if (n < 0) return errno;
  size_t bytes = static_cast<size_t>(n);
  if (request.uid() != 0) bytes = WithoutTrusted(reply.buffer(), bytes);
  if (in.size == 0) return SendSize(bytes, reply);
  if (bytes > in.size) return ERANGE;
  reply.SetBytes(bytes);
  return 0;
}

}  // namespace ops
