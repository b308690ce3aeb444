// Names: making, linking, renaming and removing them. Nothing here ever replaces what has a name.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fsop/verbs.h"

namespace fsop {
namespace {

constexpr mode_t kPermissionBits = 07777;

struct TwoPlaces {
  Place from;
  Place to;
};

sys::Result<TwoPlaces> OpenTwoPlaces(const Roots& roots, const control::Request& request) {
  auto from = OpenPlace(roots, request);
  if (!from.ok()) return from.error();
  auto to = OpenPlace(roots, request, "to_root", "to");
  if (!to.ok()) return to.error();
  return TwoPlaces{std::move(from.value()), std::move(to.value())};
}

}  // namespace

sys::Result<void> Mkdir(Roots& roots, const control::Request& request, control::Answer*) {
  auto mode = request.Unsigned("mode", UINT32_MAX);
  if (!mode.ok()) return mode.error();
  auto place = OpenPlace(roots, request);
  if (!place.ok()) return place.error();
  mode_t permissions = static_cast<mode_t>(mode.value()) & kPermissionBits;
  if (mkdirat(place.value().folder.get(), place.value().name.c_str(), permissions) != 0)
    return sys::LastError("mkdirat");
  return {};
}

sys::Result<void> Mknod(Roots& roots, const control::Request& request, control::Answer*) {
  auto mode = request.Unsigned("mode", UINT32_MAX);
  if (!mode.ok()) return mode.error();
  auto rdev = request.UnsignedOr("rdev", 0);
  if (!rdev.ok()) return rdev.error();
  auto place = OpenPlace(roots, request);
  if (!place.ok()) return place.error();
  // S_IFSOCK too: it makes the inode of a socket that nobody listens on.
  if (mknodat(place.value().folder.get(), place.value().name.c_str(), static_cast<mode_t>(mode.value()),
              rdev.value()) != 0) {
    return sys::LastError("mknodat");
  }
  return {};
}

sys::Result<void> Create(Roots& roots, const control::Request& request, control::Answer*) {
  auto mode = request.Unsigned("mode", UINT32_MAX);
  if (!mode.ok()) return mode.error();
  auto place = OpenPlace(roots, request);
  if (!place.ok()) return place.error();
  mode_t permissions = static_cast<mode_t>(mode.value()) & kPermissionBits;
  sys::UniqueFd fd(openat(place.value().folder.get(), place.value().name.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions));
  if (!fd.valid()) return sys::LastError("openat");
  return {};
}

sys::Result<void> Symlink(Roots& roots, const control::Request& request, control::Answer*) {
  auto target = request.Text("target");
  if (!target.ok()) return target.error();
  if (target.value().find('\0') != std::string::npos) return sys::Error{EINVAL, "target"};
  auto place = OpenPlace(roots, request);
  if (!place.ok()) return place.error();
  if (symlinkat(target.value().c_str(), place.value().folder.get(), place.value().name.c_str()) != 0) {
    return sys::LastError("symlinkat");
  }
  return {};
}

sys::Result<void> Link(Roots& roots, const control::Request& request, control::Answer*) {
  auto places = OpenTwoPlaces(roots, request);
  if (!places.ok()) return places.error();
  const auto& [from, to] = places.value();
  if (linkat(from.folder.get(), from.name.c_str(), to.folder.get(), to.name.c_str(), 0) != 0) {
    return sys::LastError("linkat");
  }
  return {};
}

sys::Result<void> Rename(Roots& roots, const control::Request& request, control::Answer*) {
  auto places = OpenTwoPlaces(roots, request);
  if (!places.ok()) return places.error();
  const auto& [from, to] = places.value();
  if (renameat2(from.folder.get(), from.name.c_str(), to.folder.get(), to.name.c_str(), RENAME_NOREPLACE) != 0) {
    return sys::LastError("renameat2");
  }
  return {};
}

sys::Result<void> Unlink(Roots& roots, const control::Request& request, control::Answer*) {
  auto place = OpenPlace(roots, request);
  if (!place.ok()) return place.error();
  if (unlinkat(place.value().folder.get(), place.value().name.c_str(), 0) != 0) return sys::LastError("unlinkat");
  return {};
}

sys::Result<void> Rmdir(Roots& roots, const control::Request& request, control::Answer*) {
  auto place = OpenPlace(roots, request);
  if (!place.ok()) return place.error();
  if (unlinkat(place.value().folder.get(), place.value().name.c_str(), AT_REMOVEDIR) != 0)
    return sys::LastError("rmdir");
  return {};
}

}  // namespace fsop
