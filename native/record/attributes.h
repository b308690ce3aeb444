// Reads an object's attributes for an Attrs record: stat, extended attributes (ACLs among them), symlink target.
#pragma once

#include <sys/stat.h>

#include "journal/records.h"
#include "sys/result.h"

namespace record {

enum class FdKind { kPath, kReadable };

// Fills all of `record` that the inode knows; `st` is its fstat. An O_PATH descriptor serves as well as another, also
// one of a symlink: extended attributes are reached by way of /proc/self/fd.
sys::Result<void> ReadAttributes(int fd, FdKind kind, const struct stat& st, journal::AttrsRecord* record);

}  // namespace record
