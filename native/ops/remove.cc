#include <fcntl.h>

#include <cerrno>

#include "ops/entry.h"
#include "ops/handlers.h"
#include "sys/mutate.h"

namespace ops {
namespace {

struct Victim {
  inode::Ref dir, inode;
  inode::FdRef dirfd;
  struct statx st {};
  int error = 0;
};

Victim FindVictim(Context& context, const fuse::Request& request) {
  Victim victim;
  const char* name = request.name(0);
  victim.dir = context.inodes.Find(request.nodeid());
  if (!victim.dir) {
    victim.error = ESTALE;
    return victim;
  }
  if ((victim.error = context.gate.CheckVisible(*victim.dir, name)) != 0) return victim;
  auto dirfd = context.inodes.DirectoryFd(*victim.dir);
  if (!dirfd.ok()) {
    victim.error = dirfd.error().number;
    return victim;
  }
  victim.dirfd = dirfd.value();
  auto found = context.inodes.LookUp(*victim.dir, name, &victim.st);
  if (found.ok())
    victim.inode = found.value();
  else
    victim.error = found.error().number;
  return victim;
}

// It was not removed: the name means what it did. The index took the journal's word that it was about to change.
void NoteStay(Context& context, const Victim& victim, const char* name) {
  context.gate.recorder().Moved(*victim.inode, *victim.dir, name);
}

}  // namespace

int Unlink(Context& context, const fuse::Request& request, fuse::Reply&) {
  const char* name = request.name(0);
  Victim victim = FindVictim(context, request);
  if (victim.error != 0) return victim.error;
  if (S_ISDIR(victim.st.stx_mode)) return EISDIR;
  record::Toucher by = TouchedBy(request);
  auto pass = context.gate.MutateEntry(*victim.dir, name, victim.inode.get(), by);
  if (!pass.ok()) return pass.error().number;
  if (victim.dir->realm() == inode::Realm::kStore) {
    inode::Table::Moving moving(context.inodes);
    auto done = sys::Unlink(pass.value(), victim.dirfd.get(), name);
    if (!done.ok()) return done.error().number;
    context.gate.recorder().TakenFrom(*victim.inode, StorePlace(*victim.dir, name));
    context.inodes.Displace(*victim.inode, *victim.dir, name, "", false);
    return 0;
  }
  inode::Table::Moving moving(context.inodes);
  auto removed = context.gate.recorder().RemoveFile(victim.dirfd.get(), name, *victim.inode, by);
  if (!removed.ok()) {
    NoteStay(context, victim, name);
    return removed.error().number;
  }
  if (removed.value().pin.valid()) context.inodes.Pin(*victim.inode, std::move(removed.value().pin));
  context.inodes.Displace(*victim.inode, *victim.dir, name, removed.value().place, removed.value().nameless);
  return 0;
}

int RmDir(Context& context, const fuse::Request& request, fuse::Reply&) {
  const char* name = request.name(0);
  Victim victim = FindVictim(context, request);
  if (victim.error != 0) return victim.error;
  if (!S_ISDIR(victim.st.stx_mode)) return ENOTDIR;
  record::Toucher by = TouchedBy(request);
  auto pass = context.gate.MutateEntry(*victim.dir, name, victim.inode.get(), by);
  if (!pass.ok()) return pass.error().number;
  if (victim.inode->realm() == inode::Realm::kProject) {
    auto touched = context.gate.recorder().TouchAttrs(*victim.inode, by);
    if (!touched.ok()) return touched.error().number;
  }
  // A shell may stand in it: `.` must go on answering there, as it does in a plain folder.
  auto path_fd = victim.inode->OpenPath();
  inode::Table::Moving moving(context.inodes);
  auto done = sys::RemoveDirectory(pass.value(), victim.dirfd.get(), name);
  if (!done.ok()) {
    if (victim.inode->realm() == inode::Realm::kProject) NoteStay(context, victim, name);
    return done.error().number;
  }
  if (path_fd.ok()) context.inodes.PinDirectory(*victim.inode, std::move(path_fd.value()));
  context.inodes.MarkDead(*victim.inode);
  context.inodes.Displace(*victim.inode, *victim.dir, name, "", false);
  return 0;
}

}  // namespace ops
