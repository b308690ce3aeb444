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

  record::Toucher by = TouchedBy(request);
  auto pass = context.gate.MutateEntry(*dir, name, nullptr, by);
  if (!pass.ok()) return pass.error().number;
  // Binds the object, which nothing may have touched before: else nobody could tell later what the new name means.
  if (dir->realm() == inode::Realm::kProject) {
    auto touched = context.gate.recorder().TouchAttrs(*object, by);
    if (!touched.ok()) return touched.error().number;
  }
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
