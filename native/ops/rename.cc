#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

#include "ops/entry.h"
#include "ops/handlers.h"
#include "sys/mutate.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE (1 << 1)
#define RENAME_WHITEOUT (1 << 2)
#endif

namespace ops {
namespace {

using inode::Realm;

// One side of a rename.
struct Side {
  inode::Ref dir;
  const char* name;
  inode::FdRef dirfd;
  inode::Ref present;  // empty: the name is free
};

int FindSide(Context& context, uint64_t dir_nodeid, const char* name, Side* side) {
  side->dir = context.inodes.Find(dir_nodeid);
  side->name = name;
  if (!side->dir) return ESTALE;
  if (int error = context.gate.CheckChangeable(*side->dir, name)) return error;
  auto dirfd = context.inodes.DirectoryFd(*side->dir);
  if (!dirfd.ok()) return dirfd.error().number;
  side->dirfd = dirfd.value();
  struct statx st {};
  auto found = context.inodes.LookUp(*side->dir, name, &st);
  if (found.ok())
    side->present = found.value();
  else if (found.error().number != ENOENT)
    return found.error().number;
  return 0;
}

// Where the object is now, for the journal.
void NoteMove(Context& context, inode::Inode& object, const Side& from, const Side& to) {
  record::Recorder& recorder = context.gate.recorder();
  if (from.dir->realm() == Realm::kStore) recorder.TakenFrom(object, StorePlace(*from.dir, from.name));
  if (to.dir->realm() == Realm::kStore)
    recorder.StoredAt(object, StorePlace(*to.dir, to.name));
  else
    recorder.Moved(object, *to.dir, to.name);
}

// The rename did not happen: both names mean what they did. The index took the journal's word that they were about to
// change.
void NoteStay(Context& context, const Side& from, const Side& to) {
  record::Recorder& recorder = context.gate.recorder();
  if (from.dir->realm() == Realm::kProject) recorder.Moved(*from.present, *from.dir, from.name);
  if (to.present && to.dir->realm() == Realm::kProject) recorder.Moved(*to.present, *to.dir, to.name);
}

int Exchange(Context& context, const gate::Pass& pass, const Side& from, const Side& to) {
  inode::Table::Moving moving(context.inodes);
  auto done = sys::Rename(pass, from.dirfd.get(), from.name, to.dirfd.get(), to.name, RENAME_EXCHANGE);
  if (!done.ok()) {
    NoteStay(context, from, to);
    return done.error().number;
  }
  context.inodes.Place(*from.present, *to.dir, to.name);
  context.inodes.Place(*to.present, *from.dir, from.name);
  NoteMove(context, *from.present, from, to);
  NoteMove(context, *to.present, to, from);
  return 0;
}

// The object that the rename replaces is kept first: a directory's attributes (it must be empty: the kernel says), a
// file by a link.
sys::Result<record::Removed> KeepReplaced(Context& context, const Side& to, record::Toucher by) {
  if (to.dir->realm() == Realm::kStore) return record::Removed{};
  if (!to.present->is_directory())
    return context.gate.recorder().SaveReplaced(to.dirfd.get(), to.name, *to.present, by);
  auto touched = context.gate.recorder().TouchAttrs(*to.present, by);
  if (!touched.ok()) return touched.error();
  return record::Removed{};
}

int Move(Context& context, const gate::Pass& pass, const Side& from, const Side& to, unsigned flags,
         record::Toucher by) {
  record::Removed removed;
  sys::UniqueFd replaced_fd;
  if (to.present) {
    auto kept = KeepReplaced(context, to, by);
    if (!kept.ok()) return kept.error().number;
    removed = std::move(kept.value());
    if (to.present->is_directory()) {
      auto fd = to.present->OpenPath();
      if (fd.ok()) replaced_fd = std::move(fd.value());
    }
  }
  inode::Table::Moving moving(context.inodes);
  auto done = sys::Rename(pass, from.dirfd.get(), from.name, to.dirfd.get(), to.name, flags);
  if (!done.ok()) {
    NoteStay(context, from, to);
    if (!removed.place.empty()) context.gate.recorder().UnsaveReplaced(removed, *to.present);
    return done.error().number;
  }
  if (to.present) {
    if (to.present->is_directory()) {
      if (replaced_fd.valid()) context.inodes.PinDirectory(*to.present, std::move(replaced_fd));
      context.inodes.MarkDead(*to.present);
    } else if (removed.pin.valid()) {
      context.inodes.Pin(*to.present, std::move(removed.pin));
    }
    context.inodes.Displace(*to.present, *to.dir, to.name, removed.place, removed.nameless);
  }
  context.inodes.Place(*from.present, *to.dir, to.name);
  NoteMove(context, *from.present, from, to);
  return 0;
}

int RenameWithFlags(Context& context, const fuse::Request& request, uint64_t to_dir, unsigned flags) {
  // A whiteout is a device node of overlayfs's: what it makes at the old name is not captured, so it is not done.
  if (flags & ~static_cast<unsigned>(RENAME_NOREPLACE | RENAME_EXCHANGE)) return EINVAL;
  Side from, to;
  if (int error = FindSide(context, request.nodeid(), request.name(0), &from)) return error;
  if (!from.present) return ENOENT;
  if (int error = FindSide(context, to_dir, request.name(1), &to)) return error;
  if ((flags & RENAME_NOREPLACE) && to.present) return EEXIST;
  if ((flags & RENAME_EXCHANGE) && !to.present) return ENOENT;
  // Two names of one file: POSIX says that nothing happens.
  if (to.present && to.present->nodeid() == from.present->nodeid()) return 0;
  record::Toucher by = TouchedBy(request);
  auto pass =
      context.gate.MutateEntries(*from.dir, from.name, from.present.get(), *to.dir, to.name, to.present.get(), by);
  if (!pass.ok()) return pass.error().number;
  if (flags & RENAME_EXCHANGE) return Exchange(context, pass.value(), from, to);
  return Move(context, pass.value(), from, to, flags, by);
}

}  // namespace

int Rename(Context& context, const fuse::Request& request, fuse::Reply&) {
  return RenameWithFlags(context, request, request.arg<fuse_rename_in>().newdir, 0);
}

int Rename2(Context& context, const fuse::Request& request, fuse::Reply&) {
  auto in = request.arg<fuse_rename2_in>();
  return RenameWithFlags(context, request, in.newdir, in.flags);
}

}  // namespace ops
