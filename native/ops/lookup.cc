#include <cerrno>

#include "ops/entry.h"
#include "ops/handlers.h"

namespace ops {

int Lookup(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  inode::Ref dir = context.inodes.Find(request.nodeid());
  if (!dir) return ESTALE;
  const char* name = request.name(0);
  struct statx st {};
  if (context.gate.IsDoor(*dir, name)) {
    auto store = context.inodes.StoreRoot(&st);
    if (!store.ok()) return store.error().number;
    SendEntry(context, *store.value(), st, true, reply);
    return 0;
  }
  if (int error = context.gate.CheckVisible(*dir, name)) return error;
  bool uncached = gate::Gate::Uncached(*dir);
  auto found = context.inodes.LookUp(*dir, name, &st);
  if (found.ok()) {
    SendEntry(context, *found.value(), st, uncached, reply);
    return 0;
  }
  // An answer with nodeid 0 lets the kernel remember that there is nothing: every change of this directory goes through
  // the mount.
  if (found.error().number == ENOENT && !uncached && !dir->dead()) {
    fuse_entry_out nothing{};
    nothing.entry_valid = ValidSeconds(context, false);
    reply.Send(nothing);
    return 0;
  }
  return found.error().number;
}

int Forget(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  reply.Silent();
  context.inodes.Forget(request.nodeid(), request.arg<fuse_forget_in>().nlookup);
  return 0;
}

int BatchForget(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  reply.Silent();
  auto in = request.arg<fuse_batch_forget_in>();
  auto rest = request.data();
  size_t fit = rest.size() / sizeof(fuse_forget_one);
  for (size_t i = 0; i < in.count && i < fit; ++i) {
    fuse_forget_one one;
    std::memcpy(&one, rest.data() + i * sizeof(one), sizeof(one));
    context.inodes.Forget(one.nodeid, one.nlookup);
  }
  return 0;
}

}  // namespace ops
