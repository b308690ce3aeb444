#include "ops/entry.h"

#include <fcntl.h>

#include <cerrno>

namespace ops {
namespace {

// The encoding of device numbers in FUSE messages is the kernel's new_encode_dev: 12 bits major, 20 bits minor.
uint32_t EncodeDevice(uint32_t major, uint32_t minor) {
  return (minor & 0xff) | (major << 8) | ((minor & ~0xffu) << 12);
}

}  // namespace

uint64_t ValidSeconds(const Context& context, bool uncached) {
  if (uncached) return 0;
  return context.short_timeouts.load(std::memory_order_relaxed) ? kShortSeconds : kLongSeconds;
}

record::Toucher TouchedBy(const fuse::Request& request) { return record::Toucher{request.tid()}; }

uint32_t VisibleLinks(Context& context, inode::Inode& inode, const struct statx& st) {
  if (S_ISDIR(st.stx_mode)) return inode.dead() ? 0 : st.stx_nlink;
  // With one link, and that at a known name of the project, there can be none in the store.
  record::Subject* parent = inode.parent();
  if (st.stx_nlink <= 1 && parent != nullptr) return st.stx_nlink;
  uint32_t stored = context.gate.recorder().StoreLinks(inode.dev(), inode.ino());
  return st.stx_nlink > stored ? st.stx_nlink - stored : 0;
}

void FillAttr(Context& context, inode::Inode& inode, const struct statx& st, fuse_attr* out) {
  *out = {};
  out->ino = st.stx_ino;
  out->size = st.stx_size;
  out->blocks = st.stx_blocks;
  out->atime = static_cast<uint64_t>(st.stx_atime.tv_sec);
  out->mtime = static_cast<uint64_t>(st.stx_mtime.tv_sec);
  out->ctime = static_cast<uint64_t>(st.stx_ctime.tv_sec);
  out->atimensec = st.stx_atime.tv_nsec;
  out->mtimensec = st.stx_mtime.tv_nsec;
  out->ctimensec = st.stx_ctime.tv_nsec;
  out->mode = st.stx_mode;
  out->nlink = VisibleLinks(context, inode, st);
  out->uid = st.stx_uid;
  out->gid = st.stx_gid;
  out->rdev = EncodeDevice(st.stx_rdev_major, st.stx_rdev_minor);
  out->blksize = st.stx_blksize;
}

fuse_entry_out MakeEntry(Context& context, inode::Inode& inode, const struct statx& st, bool uncached) {
  fuse_entry_out out{};
  out.nodeid = inode.nodeid();
  out.entry_valid = ValidSeconds(context, uncached);
  out.attr_valid = out.entry_valid;
  FillAttr(context, inode, st, &out.attr);
  return out;
}

void SendEntry(Context& context, inode::Inode& inode, const struct statx& st, bool uncached, fuse::Reply& reply) {
  fuse_entry_out out = MakeEntry(context, inode, st, uncached);
  // Counted before the reply is out: the kernel may forget it the moment it has it.
  context.inodes.AddLookup(inode);
  reply.GivesLookup(out.nodeid);
  reply.Send(out);
}

int Stat(Context& context, inode::Inode& inode, struct statx* st) {
  auto fd = context.inodes.PathFd(inode);
  if (!fd.ok()) return fd.error().number;
  if (statx(fd.value().get(), "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, kStatxMask, st) != 0) return errno;
  return 0;
}

std::string StorePlace(inode::Inode& store_dir, std::string_view name) {
  std::string place(name);
  record::Subject* dir = &store_dir;
  // The root of the store has no parent in the store: its slot hangs below nothing.
  while (dir != nullptr && dir->parent() != nullptr) {
    place = dir->name() + "/" + place;
    dir = dir->parent();
  }
  return place;
}

}  // namespace ops
