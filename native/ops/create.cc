#include <fcntl.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "ops/entry.h"
#include "ops/handlers.h"
#include "sys/credentials.h"
#include "sys/mutate.h"

namespace ops {
namespace {

// FUSE's encoding of device numbers (the kernel's new_encode_dev).
dev_t DecodeDevice(uint32_t rdev) { return makedev((rdev & 0xfff00) >> 8, (rdev & 0xff) | ((rdev >> 12) & 0xfff00)); }

// A name about to be made: the directory's descriptor and what the name means now. It is looked at even though the
// kernel believes it free: a file made behind the mount must not be recorded as absent, or a rewind would remove it.
struct NewName {
  inode::Ref dir;
  inode::FdRef dirfd;
  inode::Ref present;
  int error = 0;
};

NewName FindNewName(Context& context, uint64_t dir_nodeid, const char* name) {
  NewName found;
  found.dir = context.inodes.Find(dir_nodeid);
  if (!found.dir) {
    found.error = ESTALE;
    return found;
  }
  if ((found.error = context.gate.CheckChangeable(*found.dir, name)) != 0) return found;
  auto dirfd = context.inodes.DirectoryFd(*found.dir);
  if (!dirfd.ok()) {
    found.error = dirfd.error().number;
    return found;
  }
  found.dirfd = dirfd.value();
  struct statx st {};
  auto present = context.inodes.LookUp(*found.dir, name, &st);
  if (present.ok())
    found.present = present.value();
  else if (present.error().number != ENOENT)
    found.error = present.error().number;
  return found;
}

// The new object gets its slot and its first reply.
int Introduce(Context& context, const NewName& at, const char* name, const fuse::Request& request, fuse::Reply& reply) {
  struct statx st {};
  auto made = context.inodes.LookUp(*at.dir, name, &st);
  if (!made.ok()) return made.error().number;
  context.gate.recorder().Born(*made.value(), TouchedBy(request));
  SendEntry(context, *made.value(), st, gate::Gate::Uncached(*at.dir), reply);
  return 0;
}

// Makes dir/name by `make(pass, dirfd)`.
template <typename Make>
int MakeEntryWith(Context& context, const fuse::Request& request, fuse::Reply& reply, const char* name, mode_t umask,
                  Make make) {
  NewName at = FindNewName(context, request.nodeid(), name);
  if (at.error != 0) return at.error;
  if (at.present) return EEXIST;
  auto pass = context.gate.MutateEntry(*at.dir, name, nullptr, TouchedBy(request));
  if (!pass.ok()) return pass.error().number;
  {
    sys::ActAs as(request.uid(), request.gid(), umask);
    if (int error = make(pass.value(), at.dirfd.get())) return error;
  }
  return Introduce(context, at, name, request, reply);
}

int ErrorOf(const sys::Result<void>& result) { return result.ok() ? 0 : result.error().number; }

}  // namespace

int MkNod(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  auto in = request.arg<fuse_mknod_in>();
  const char* name = request.name(0);
  return MakeEntryWith(context, request, reply, name, in.umask, [&](const gate::Pass& pass, int dirfd) {
    return ErrorOf(sys::MakeNode(pass, dirfd, name, in.mode, DecodeDevice(in.rdev)));
  });
}

int MkDir(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  auto in = request.arg<fuse_mkdir_in>();
  const char* name = request.name(0);
  return MakeEntryWith(context, request, reply, name, in.umask, [&](const gate::Pass& pass, int dirfd) {
    return ErrorOf(sys::MakeDirectory(pass, dirfd, name, in.mode));
  });
}

int Symlink(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  const char* name = request.name(0);
  const char* target = request.name(1);
  return MakeEntryWith(context, request, reply, name, 0, [&](const gate::Pass& pass, int dirfd) {
    return ErrorOf(sys::MakeSymlink(pass, target, dirfd, name));
  });
}

int Create(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  auto in = request.arg<fuse_create_in>();
  const char* name = request.name(0);
  int error = MakeEntryWith(context, request, reply, name, in.umask, [&](const gate::Pass& pass, int dirfd) {
    auto fd = sys::CreateFile(pass, dirfd, name, in.mode & 07777);
    return fd.ok() ? 0 : fd.error().number;
  });
  // Somebody behind the mount was first: without O_EXCL that file is the one to open.
  if (error == EEXIST && (in.flags & O_EXCL) == 0) {
    inode::Ref dir = context.inodes.Find(request.nodeid());
    if (!dir) return ESTALE;
    struct statx st {};
    auto present = context.inodes.LookUp(*dir, name, &st);
    if (!present.ok()) return present.error().number;
    if (!S_ISREG(st.stx_mode)) return ESTALE;  // the kernel looks again and opens by kind
    SendEntry(context, *present.value(), st, gate::Gate::Uncached(*dir), reply);
    error = 0;
  }
  if (error != 0) return error;
  fuse_open_out out{};
  // Descriptors have no handle here: opens of known files come without a message, so nothing could be kept per open.
  out.open_flags = FOPEN_KEEP_CACHE;
  reply.Send(out);
  return 0;
}

int TmpFile(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  auto in = request.arg<fuse_create_in>();
  inode::Ref dir = context.inodes.Find(request.nodeid());
  if (!dir) return ESTALE;
  auto dirfd = context.inodes.DirectoryFd(*dir);
  if (!dirfd.ok()) return dirfd.error().number;
  gate::Pass pass = context.gate.MakeNameless();
  auto fd = [&] {
    sys::ActAs as(request.uid(), request.gid(), in.umask);
    return sys::CreateTmpFile(pass, dirfd.value().get(), in.mode & 07777);
  }();
  if (!fd.ok()) return fd.error().number;
  struct statx st {};
  auto made = context.inodes.Adopt(fd.value().get(), *dir, &st);
  if (!made.ok()) return made.error().number;
  inode::Inode& file = *made.value();
  context.gate.recorder().Born(file, TouchedBy(request));
  // Later messages name only the nodeid: a link in the store is what leads to the file again.
  auto kept = context.gate.recorder().KeepNameless(fd.value().get(), file);
  if (!kept.ok()) return kept.error().number;
  context.inodes.Displace(file, *dir, "", kept.value().place, true);
  if (statx(fd.value().get(), "", AT_EMPTY_PATH, kStatxMask, &st) != 0) return errno;
  SendEntry(context, file, st, false, reply);
  fuse_open_out out{};
  out.open_flags = FOPEN_KEEP_CACHE;
  reply.Send(out);
  return 0;
}

}  // namespace ops
