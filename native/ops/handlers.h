// Every handler, by family; the op table (optable.cc) names them. Each reads alike: find the inodes, check names, ask
// the gate, one system call, bring the inode table up to date, reply.
#pragma once

#include "ops/context.h"

namespace ops {

// lookup.cc
int Lookup(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Forget(Context& context, const fuse::Request& request, fuse::Reply& reply);
int BatchForget(Context& context, const fuse::Request& request, fuse::Reply& reply);
// attr.cc
int GetAttr(Context& context, const fuse::Request& request, fuse::Reply& reply);
int SetAttr(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Statx(Context& context, const fuse::Request& request, fuse::Reply& reply);
int ReadLink(Context& context, const fuse::Request& request, fuse::Reply& reply);
int StatFs(Context& context, const fuse::Request& request, fuse::Reply& reply);
// create.cc
int Create(Context& context, const fuse::Request& request, fuse::Reply& reply);
int MkNod(Context& context, const fuse::Request& request, fuse::Reply& reply);
int MkDir(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Symlink(Context& context, const fuse::Request& request, fuse::Reply& reply);
int TmpFile(Context& context, const fuse::Request& request, fuse::Reply& reply);
// link.cc
int Link(Context& context, const fuse::Request& request, fuse::Reply& reply);
// remove.cc
int Unlink(Context& context, const fuse::Request& request, fuse::Reply& reply);
int RmDir(Context& context, const fuse::Request& request, fuse::Reply& reply);
// rename.cc
int Rename(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Rename2(Context& context, const fuse::Request& request, fuse::Reply& reply);
// open.cc
int Open(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Release(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Refuse(Context& context, const fuse::Request& request, fuse::Reply& reply);
int RefuseIoctl(Context& context, const fuse::Request& request, fuse::Reply& reply);
// io.cc
int Read(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Write(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Fsync(Context& context, const fuse::Request& request, fuse::Reply& reply);
int FsyncDir(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Fallocate(Context& context, const fuse::Request& request, fuse::Reply& reply);
int Lseek(Context& context, const fuse::Request& request, fuse::Reply& reply);
int CopyFileRange(Context& context, const fuse::Request& request, fuse::Reply& reply);
int CopyFileRange64(Context& context, const fuse::Request& request, fuse::Reply& reply);
// readdir.cc
int OpenDir(Context& context, const fuse::Request& request, fuse::Reply& reply);
int ReadDir(Context& context, const fuse::Request& request, fuse::Reply& reply);
int ReadDirPlus(Context& context, const fuse::Request& request, fuse::Reply& reply);
int ReleaseDir(Context& context, const fuse::Request& request, fuse::Reply& reply);
// xattr.cc
int SetXattr(Context& context, const fuse::Request& request, fuse::Reply& reply);
int GetXattr(Context& context, const fuse::Request& request, fuse::Reply& reply);
int ListXattr(Context& context, const fuse::Request& request, fuse::Reply& reply);
int RemoveXattr(Context& context, const fuse::Request& request, fuse::Reply& reply);

}  // namespace ops
