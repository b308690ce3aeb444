#include "keeper/mount.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "keeper/fusermount.h"

#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif
#ifndef ST_NOSYMFOLLOW
#define ST_NOSYMFOLLOW 0x2000
#endif

namespace keeper {
namespace {

std::string PathOf(int fd) {
  char path[PATH_MAX];
  ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

// What the project's own mount forbids is forbidden on top of it too.
struct Flags {
  unsigned long bits = 0;
  std::string words;  // for fusermount3, each with a comma before it
};

Failure UnderlyingFlags(int project_fd, Flags* flags) {
  struct statvfs st;
  if (fstatvfs(project_fd, &st) != 0) return MakeFailure(errno, "fstatvfs", "The project's filesystem can't be asked");
  constexpr struct {
    unsigned long present;
    unsigned long wanted;
    const char* word;
  } kRows[] = {
      {ST_RDONLY, MS_RDONLY, "ro"},     {ST_NOSUID, MS_NOSUID, "nosuid"},          {ST_NODEV, MS_NODEV, "nodev"},
      {ST_NOEXEC, MS_NOEXEC, "noexec"}, {ST_NOSYMFOLLOW, MS_NOSYMFOLLOW, nullptr},  // fusermount3 has no word for it
  };
  for (const auto& row : kRows) {
    if ((st.f_flag & row.present) == 0) continue;
    flags->bits |= row.wanted;
    if (row.word != nullptr) flags->words += std::string(",") + row.word;
  }
  return {};
}

// Opens the mountpoint and checks that it is what the daemon meant.
Failure OpenMountpoint(int project_fd, const std::string& mountpoint, sys::UniqueFd* fd) {
  auto present = FindMount(mountpoint);
  if (present.has_value() && present->type == kMountType) {
    return {EBUSY, "mountpoint", mountpoint + " has turnfs mounted already"};
  }
  fd->Reset(open(mountpoint.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd->valid()) return MakeFailure(errno, "open", "The mountpoint " + mountpoint + " can't be opened");
  struct stat there;
  struct stat project;
  if (fstat(fd->get(), &there) != 0) return MakeFailure(errno, "fstat", "The mountpoint can't be looked at");
  if (fstat(project_fd, &project) != 0) return MakeFailure(errno, "fstat", "The project folder can't be looked at");
  if (!S_ISDIR(project.st_mode)) return {ENOTDIR, "project-fd", "The project descriptor is no folder"};
  bool same_folder = there.st_dev == project.st_dev && there.st_ino == project.st_ino;
  if (!same_folder && PathOf(project_fd) == mountpoint) {
    return {ESTALE, "mountpoint", mountpoint + " is not the project folder any more"};
  }
  return {};
}

Failure OpenFuse(sys::UniqueFd* fd) {
  fd->Reset(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!fd->valid()) return MakeFailure(errno, "/dev/fuse", "/dev/fuse can't be opened");
  // A container without FUSE may show something else under that name; mount(2) would only say EINVAL.
  struct stat st;
  constexpr unsigned kMiscMajor = 10, kFuseMinor = 229;
  if (fstat(fd->get(), &st) != 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(kMiscMajor, kFuseMinor))
    return MakeFailure(ENODEV, "/dev/fuse", "/dev/fuse is not the FUSE device");
  return {};
}

Failure MountAsRoot(int project_fd, int mountpoint_fd, const Flags& flags, sys::UniqueFd* fuse_fd) {
  if (Failure failure = OpenFuse(fuse_fd); failure.failed()) return failure;
  std::string options = "fd=" + std::to_string(fuse_fd->get()) +
                        ",rootmode=40000,user_id=" + std::to_string(geteuid()) +
                        ",group_id=" + std::to_string(getegid()) + ",default_permissions,allow_other";
  // The descriptor, not the path: it is this folder and no other that gets mounted over.
  std::string target = "/proc/self/fd/" + std::to_string(mountpoint_fd);
  std::string source = PathOf(project_fd);
  if (mount(source.c_str(), target.c_str(), std::string(kMountType).c_str(), flags.bits, options.c_str()) != 0) {
    int number = errno;
    fuse_fd->Reset();
    return MakeFailure(number, "mount", "The filesystem can't be mounted");
  }
  return {};
}

Failure MountAsUser(int project_fd, const std::string& mountpoint, const Flags& flags, sys::UniqueFd* fuse_fd) {
  // The helper opens the device with our own rights; asking first tells which errno it is.
  sys::UniqueFd probe;
  if (Failure failure = OpenFuse(&probe); failure.failed()) return failure;
  probe.Reset();
  std::string source;
  for (char c : PathOf(project_fd)) {
    if (c == ',' || c == '\\') source.push_back('\\');
    source.push_back(c);
  }
  return FusermountMount(mountpoint, "fsname=" + source + ",subtype=turnfs,default_permissions" + flags.words, fuse_fd);
}

}  // namespace

Failure Mount(int project_fd, const std::string& mountpoint, Mounted* mounted) {
  sys::UniqueFd mountpoint_fd;
  if (Failure failure = OpenMountpoint(project_fd, mountpoint, &mountpoint_fd); failure.failed()) return failure;
  Flags flags;
  if (Failure failure = UnderlyingFlags(project_fd, &flags); failure.failed()) return failure;
  mounted->mountpoint = PathOf(mountpoint_fd.get());
  Failure failure = geteuid() == 0 ? MountAsRoot(project_fd, mountpoint_fd.get(), flags, &mounted->fuse_fd)
                                   : MountAsUser(project_fd, mounted->mountpoint, flags, &mounted->fuse_fd);
  if (failure.failed()) return failure;
  auto entry = FindMount(mounted->mountpoint);
  if (!entry.has_value() || entry->type != kMountType) {
    // Renamed meanwhile: the mount is where the folder is now, and goes again.
    mounted->fuse_fd.Reset();
    std::string moved_to = PathOf(mountpoint_fd.get());
    auto moved = FindMount(moved_to);
    if (moved.has_value() && moved->type == kMountType) failure = Unmount(moved_to, /*lazy=*/true);
    if (failure.failed()) return failure;
    return {ESTALE, "mountpoint", "The mountpoint moved while it was mounted over"};
  }
  mounted->entry = std::move(*entry);
  return {};
}

Failure Unmount(const std::string& mountpoint, bool lazy) {
  if (geteuid() != 0) return FusermountUnmount(mountpoint, lazy);
  if (umount2(mountpoint.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) != 0) {
    return MakeFailure(errno, "umount2", mountpoint + " can't be unmounted");
  }
  return {};
}

bool IsMounted(const std::string& mountpoint, const MountEntry& entry) {
  auto present = FindMount(mountpoint);
  return present.has_value() && present->type == kMountType && present->id == entry.id &&
         present->device_minor == entry.device_minor;
}

}  // namespace keeper
