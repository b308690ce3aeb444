#include <cerrno>

#include "ops/entry.h"
#include "ops/handlers.h"
#include "sys/mutate.h"

namespace ops {

int Link(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  auto in = request.arg<fuse_link_in>();
  const char* name = request.name(0);
  inode::Ref dir = context.inodes.Find(request.nodeid());
  inode::Ref object = context.inodes.Find(in.oldnodeid);
  if (!dir || !object) return ESTALE;
  if (int error = context.gate.CheckChangeable(*dir, name)) return error;
  auto dirfd = context.inodes.DirectoryFd(*dir);
  if (!dirfd.ok()) return dirfd.error().number;
  auto fd = context.inodes.PathFd(*object);
  if (!fd.ok()) return fd.error().number;
  struct statx st {};
  auto present = context.inodes.LookUp(*dir, name, &st);
  if (present.ok()) return EEXIST;
  if (present.error().number != ENOENT) return present.error().number;

  auto pass = context.gate.MutateEntry(*dir, name, nullptr, TouchedBy(request));
  if (!pass.ok()) return pass.error().number;
  auto linked = sys::Link(pass.value(), fd.value().get(), dirfd.value().get(), name);
  if (!linked.ok()) return linked.error().number;
  context.inodes.Place(*object, *dir, name);
  if (dir->realm() == inode::Realm::kProject)
    context.gate.recorder().Moved(*object, *dir, name);
  else
    context.gate.recorder().StoredAt(*object, StorePlace(*dir, name));
  if (int error = Stat(context, *object, &st)) return error;
  SendEntry(context, *object, st, gate::Gate::Uncached(*dir), reply);
  return 0;
}

}  // namespace ops
