#include "record/attributes.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace record {
namespace {

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec; }

class XattrReader {
 public:
  XattrReader(int fd, FdKind kind) : fd_(fd), kind_(kind) { snprintf(path_, sizeof path_, "/proc/self/fd/%d", fd); }

  ssize_t List(char* names, size_t size) const {
    return kind_ == FdKind::kPath ? listxattr(path_, names, size) : flistxattr(fd_, names, size);
  }
  ssize_t Get(const char* name, char* value, size_t size) const {
    return kind_ == FdKind::kPath ? getxattr(path_, name, value, size) : fgetxattr(fd_, name, value, size);
  }

 private:
  const int fd_;
  const FdKind kind_;
  char path_[32];
};

// Calls `get(buffer, size)` with a buffer that is large enough, also when the value grows meanwhile.
template <typename Get>
ssize_t ReadGrowing(std::vector<char>* buffer, Get get) {
  while (true) {
    const ssize_t size = get(buffer->data(), buffer->size());
    if (size >= 0 || errno != ERANGE) return size;
    const ssize_t needed = get(nullptr, 0);
    if (needed < 0) return needed;
    buffer->resize(static_cast<size_t>(needed) + 64);
  }
}

sys::Result<void> ReadXattrs(const XattrReader& reader, std::vector<journal::Xattr>* out) {
  // Room for the usual cases, so that most objects cost one call.
  thread_local std::vector<char> names(1024), value(1024);
  const ssize_t listed = ReadGrowing(&names, [&](char* to, size_t size) { return reader.List(to, size); });
  if (listed < 0) {
    if (errno == ENOTSUP) return {};
    return sys::LastError("listxattr");
  }
  for (const char* name = names.data(); name < names.data() + listed; name += strlen(name) + 1) {
    const ssize_t size = ReadGrowing(&value, [&](char* to, size_t room) { return reader.Get(name, to, room); });
    if (size < 0) {
      if (errno == ENODATA) continue;  // removed since it was listed
      return sys::LastError("getxattr");
    }
    out->push_back({name, std::string(value.data(), static_cast<size_t>(size))});
  }
  return {};
}

sys::Result<void> ReadTarget(int fd, std::string* target) {
  std::vector<char> buffer(4096 + 1);
  const ssize_t size = readlinkat(fd, "", buffer.data(), buffer.size());
  if (size < 0) return sys::LastError("readlinkat");
  target->assign(buffer.data(), static_cast<size_t>(size));
  return {};
}

}  // namespace

sys::Result<void> ReadAttributes(int fd, FdKind kind, const struct stat& st, journal::AttrsRecord* record) {
  record->mode = st.st_mode;
  record->uid = st.st_uid;
  record->gid = st.st_gid;
  record->size = static_cast<uint64_t>(st.st_size);
  record->mtime_ns = Nanoseconds(st.st_mtim);
  record->ctime_ns = Nanoseconds(st.st_ctim);
  record->rdev = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) ? st.st_rdev : 0;
  record->nlink = static_cast<uint32_t>(st.st_nlink);
  if (auto read = ReadXattrs(XattrReader(fd, kind), &record->xattrs); !read.ok()) return read;
  if (S_ISLNK(st.st_mode)) return ReadTarget(fd, &record->target);
  return {};
}

}  // namespace record
