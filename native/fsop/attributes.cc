// Owner, xattrs, mode, mtime of an object.
#include <fcntl.h>
#include <sys/stat.h>

#include <optional>

#include "fsop/verbs.h"
#include "fsop/xattr.h"

namespace fsop {
namespace {

constexpr mode_t kPermissionBits = 07777;
constexpr int64_t kNanosecondsPerSecond = 1000000000;

struct Wanted {
  std::optional<mode_t> mode;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<int64_t> mtime_ns;
  std::vector<control::Field> set_xattrs;  // keys are names already
  std::vector<std::string> remove_xattrs;
};

template <typename Number>
sys::Result<void> TakeNumber(const control::Request& request, const char* key, std::optional<Number>* number) {
  if (request.Find(key) == nullptr) return {};
  auto value = request.Unsigned(key, UINT32_MAX);
  if (!value.ok()) return value.error();
  *number = static_cast<Number>(value.value());
  return {};
}

// Everything is checked before the first change.
sys::Result<Wanted> ParseWanted(const control::Request& request) {
  Wanted wanted;
  if (auto r = TakeNumber(request, "mode", &wanted.mode); !r.ok()) return r.error();
  if (auto r = TakeNumber(request, "uid", &wanted.uid); !r.ok()) return r.error();
  if (auto r = TakeNumber(request, "gid", &wanted.gid); !r.ok()) return r.error();
  if (request.Find("mtime") != nullptr) {
    auto mtime = request.Signed("mtime");
    if (!mtime.ok()) return mtime.error();
    wanted.mtime_ns = mtime.value();
  }
  for (const control::Field& field : request.fields) {
    std::string name;
    if (field.key.starts_with("x.")) {
      if (!control::DecodeHex(std::string_view(field.key).substr(2), &name)) return sys::Error{EINVAL, "x"};
    } else if (field.key == "rx") {
      name = field.value;
    } else {
      continue;
    }
    if (name.empty() || name.find('\0') != std::string::npos) return sys::Error{EINVAL, "xattr-name"};
    if (field.key == "rx") {
      wanted.remove_xattrs.push_back(std::move(name));
    } else {
      wanted.set_xattrs.push_back({std::move(name), field.value});
    }
  }
  return wanted;
}

sys::Result<void> LookAt(int object, struct stat* st) {
  if (fstat(object, st) != 0) return sys::LastError("fstat");
  return {};
}

// Not when it is so already: a chown to the present owner clears set-uid bits, and is refused to somebody who has left
// the file's group.
sys::Result<void> ChangeOwner(int object, const struct stat& st, const Wanted& wanted) {
  bool other_uid = wanted.uid.has_value() && *wanted.uid != st.st_uid;
  bool other_gid = wanted.gid.has_value() && *wanted.gid != st.st_gid;
  if (!other_uid && !other_gid) return {};
  uid_t uid = other_uid ? *wanted.uid : static_cast<uid_t>(-1);
  gid_t gid = other_gid ? *wanted.gid : static_cast<gid_t>(-1);
  if (fchownat(object, "", uid, gid, AT_EMPTY_PATH) != 0) return sys::LastError("fchownat");
  return {};
}

sys::Result<void> ChangeXattrs(int object, const Wanted& wanted) {
  for (const std::string& name : wanted.remove_xattrs) {
    if (auto r = RemoveXattr(object, name); !r.ok()) return r;
  }
  for (const control::Field& xattr : wanted.set_xattrs) {
    if (auto r = SetXattr(object, xattr.key, xattr.value); !r.ok()) return r;
  }
  return {};
}

sys::Result<void> ChangeMode(int object, mode_t permissions) {
  struct stat st;
  if (auto r = LookAt(object, &st); !r.ok()) return r;
  // A symlink's mode can't be changed and means nothing.
  if (S_ISLNK(st.st_mode) || (st.st_mode & kPermissionBits) == permissions) return {};
  if (chmod(DescriptorPath(object).c_str(), permissions) != 0) return sys::LastError("chmod");
  if (auto r = LookAt(object, &st); !r.ok()) return r;
  // chmod drops the set-gid bit, and reports success, when the caller is not in the file's group.
  if ((st.st_mode & kPermissionBits) != permissions) return sys::Error{EPERM, "chmod"};
  return {};
}

sys::Result<void> ChangeMtime(int object, int64_t mtime_ns) {
  // The remainder must not be negative, also for times before 1970.
  int64_t nanoseconds = mtime_ns % kNanosecondsPerSecond;
  if (nanoseconds < 0) nanoseconds += kNanosecondsPerSecond;
  timespec times[2] = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = (mtime_ns - nanoseconds) / kNanosecondsPerSecond;
  times[1].tv_nsec = nanoseconds;
  if (utimensat(object, "", times, AT_EMPTY_PATH) != 0) return sys::LastError("utimensat");
  return {};
}

}  // namespace

sys::Result<void> Attrs(Roots& roots, const control::Request& request, control::Answer*) {
  auto parsed = ParseWanted(request);
  if (!parsed.ok()) return parsed.error();
  const Wanted& wanted = parsed.value();
  auto opened = OpenObject(roots, request);
  if (!opened.ok()) return opened.error();
  int object = opened.value().get();
  struct stat before;
  if (auto r = LookAt(object, &before); !r.ok()) return r;

  // The order matters: chown clears set-uid bits and security.capability, an ACL changes the group bits of the mode,
  // and everything else might touch the times.
  if (auto r = ChangeOwner(object, before, wanted); !r.ok()) return r;
  if (auto r = ChangeXattrs(object, wanted); !r.ok()) return r;
  bool acl = false;
  for (const control::Field& xattr : wanted.set_xattrs) acl |= xattr.key.starts_with("system.posix_acl_");
  for (const std::string& name : wanted.remove_xattrs) acl |= name.starts_with("system.posix_acl_");
  if (wanted.mode.has_value()) {
    if (auto r = ChangeMode(object, *wanted.mode & kPermissionBits); !r.ok()) return r;
  } else if (!acl) {
    // Without an order the mode stays what it was, set-uid bits included.
    if (auto r = ChangeMode(object, before.st_mode & kPermissionBits); !r.ok()) return r;
  }
  if (wanted.mtime_ns.has_value()) return ChangeMtime(object, *wanted.mtime_ns);
  return {};
}

}  // namespace fsop
