// Replies that describe an inode: attributes and entries, with the store's extra links hidden.
#pragma once

#include <linux/fuse.h>
#include <sys/stat.h>

#include "ops/context.h"

namespace ops {

constexpr unsigned kStatxMask = STATX_BASIC_STATS | STATX_BTIME;

// How long the kernel may keep what it is told, in seconds.
constexpr uint64_t kLongSeconds = 86400;
constexpr uint64_t kShortSeconds = 1;

// 0 below the store, else long, or short while somebody stands behind the mount.
uint64_t ValidSeconds(const Context& context, bool uncached);

record::Toucher TouchedBy(const fuse::Request& request);

// st_nlink without the links that lie in the store.
uint32_t VisibleLinks(Context& context, inode::Inode& inode, const struct statx& st);
void FillAttr(Context& context, inode::Inode& inode, const struct statx& st, fuse_attr* out);
fuse_entry_out MakeEntry(Context& context, inode::Inode& inode, const struct statx& st, bool uncached);
// Adds the lookup that the reply hands out.
void SendEntry(Context& context, inode::Inode& inode, const struct statx& st, bool uncached, fuse::Reply& reply);

// statx of an inode by whatever leads to it.
int Stat(Context& context, inode::Inode& inode, struct statx* st);

// The place below the store of `name` in a store directory.
std::string StorePlace(inode::Inode& store_dir, std::string_view name);

}  // namespace ops
