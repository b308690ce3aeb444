// The folders that `fsop` works in, and the only ways from a path to a descriptor. A path is relative to a root and is
// resolved by the kernel below it: no symlink, no `..` that leaves, no /proc magic on the way. The last name is never
// followed. Single-threaded, like all of fsop.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "control/line.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace fsop {

struct Root {
  sys::UniqueFd fd;  // O_RDONLY where permitted (syncfs and file handles need that), else O_PATH
  uint64_t dev = 0;
};

// A name in an opened folder. For the root itself, name is ".".
struct Place {
  sys::UniqueFd folder;
  std::string name;
};

class Roots {
 public:
  sys::Result<void> Open(const std::string& id, const std::string& path);
  sys::Result<void> Close(const std::string& id);
  sys::Result<const Root*> Get(const control::Request& request, const char* key) const;

 private:
  std::map<std::string, Root, std::less<>> roots_;
};

// What a request's root and path fields name. All three keep `where` to the call that failed.
// An O_PATH descriptor of the object itself, symlinks included.
sys::Result<sys::UniqueFd> OpenObject(const Roots& roots, const control::Request& request,
                                      const char* root_key = "root", const char* path_key = "path");
// A regular file, with these access flags. Never opens a FIFO or a device (which would block, or do things).
sys::Result<sys::UniqueFd> OpenFile(const Roots& roots, const control::Request& request, int flags,
                                    const char* root_key = "root", const char* path_key = "path");
// The folder of the last name, for making, removing and renaming it.
sys::Result<Place> OpenPlace(const Roots& roots, const control::Request& request, const char* root_key = "root",
                             const char* path_key = "path");

// Opens what `object` (O_PATH) is once more, with access; O_NOATIME is tried first when reading.
sys::Result<sys::UniqueFd> Reopen(int object, int flags);
// openat2 below `folder` with the confinement above; the flags gain O_CLOEXEC and O_NOFOLLOW.
sys::Result<sys::UniqueFd> OpenBelow(int folder, const std::string& path, int flags);
// "/proc/self/fd/N": a path for the calls that take none of O_PATH descriptors. It means the object itself, also a
// symlink.
std::string DescriptorPath(int fd);

}  // namespace fsop
