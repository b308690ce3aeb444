// Opens. OPEN is answered ENOSYS once: with FUSE_NO_OPEN_SUPPORT (protocol 7.23) the kernel then opens files without a
// message. So no descriptor has a handle here, and everything goes by nodeid.
#include <cerrno>

#include "ops/handlers.h"

namespace ops {

int Open(Context&, const fuse::Request&, fuse::Reply&) { return ENOSYS; }

// Sent for files opened by CREATE and TMPFILE only; there is nothing to let go.
int Release(Context&, const fuse::Request&, fuse::Reply&) { return 0; }

int Refuse(Context&, const fuse::Request&, fuse::Reply&) { return ENOSYS; }

// What an ioctl changes (flags, verity, encryption) is not captured, so none passes. The errno is that of a file system
// without them.
int RefuseIoctl(Context&, const fuse::Request&, fuse::Reply&) { return ENOTTY; }

}  // namespace ops
