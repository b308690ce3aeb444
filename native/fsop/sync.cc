// Getting things to where they belong: fsync, syncfs, and the flush of a barrier.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fsop/verbs.h"

namespace fsop {
namespace {

constexpr size_t kMarkerMapBytes = 4096;

// A store to a mapping raises SIGBUS when the engine dies at that moment. fsop is single-threaded, so one jump buffer
// does.
sigjmp_buf store_failed;

void OnBusError(int) { siglongjmp(store_failed, 1); }

// False: the page could not be made writable.
bool StoreChangedByte(volatile char* byte) {
  struct sigaction action {};
  struct sigaction previous {};
  action.sa_handler = OnBusError;
  sigaction(SIGBUS, &action, &previous);
  bool stored = sigsetjmp(store_failed, 1) == 0;
  // Another value each time, though any store would make the page dirty.
  if (stored) *byte = static_cast<char>(*byte + 1);
  sigaction(SIGBUS, &previous, nullptr);
  return stored;
}

sys::Result<void> StoreInMapping(int fd) {
  void* map = mmap(nullptr, kMarkerMapBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return sys::LastError("mmap");
  sys::Result<void> result;
  if (!StoreChangedByte(static_cast<volatile char*>(map))) {
    result = sys::Error{EIO, "marker"};
  } else if (fsync(fd) != 0) {
    result = sys::LastError("fsync");
  }
  munmap(map, kMarkerMapBytes);
  return result;
}

}  // namespace

sys::Result<void> Fsync(Roots& roots, const control::Request& request, control::Answer*) {
  auto object = OpenObject(roots, request);
  if (!object.ok()) return object.error();
  struct stat st;
  if (fstat(object.value().get(), &st) != 0) return sys::LastError("fstat");
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return sys::Error{EINVAL, "path"};
  auto file = Reopen(object.value().get(), O_RDONLY);
  if (!file.ok()) return file.error();
  if (fsync(file.value().get()) != 0) return sys::LastError("fsync");
  return {};
}

sys::Result<void> Syncfs(Roots& roots, const control::Request& request, control::Answer*) {
  auto root = roots.Get(request, "root");
  if (!root.ok()) return root.error();
  if (syncfs(root.value()->fd.get()) != 0) return sys::LastError("syncfs");
  return {};
}

// syncfs starts the write-back of every dirty page of the mount but does not wait for it. The marker's own write queues
// up behind those, so when its fsync returns they have reached the engine. Nothing stays open: umount would say busy.
sys::Result<void> Flush(Roots&, const control::Request& request, control::Answer*) {
  auto mount = request.Text("mount");
  if (!mount.ok()) return mount.error();
  auto marker = request.Text("marker");
  if (!marker.ok()) return marker.error();
  if (mount.value().find('\0') != std::string::npos) return sys::Error{EINVAL, "mount"};
  if (marker.value().find('\0') != std::string::npos) return sys::Error{EINVAL, "marker"};
  sys::UniqueFd folder(open(mount.value().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return sys::LastError("open");
  if (syncfs(folder.get()) != 0) return sys::LastError("syncfs");
  auto object = OpenBelow(folder.get(), marker.value(), O_PATH);
  if (!object.ok()) return object.error();
  struct stat st;
  if (fstat(object.value().get(), &st) != 0) return sys::LastError("fstat");
  if (!S_ISREG(st.st_mode) || st.st_size < 1) return sys::Error{EINVAL, "marker"};
  auto file = Reopen(object.value().get(), O_RDWR);
  if (!file.ok()) return file.error();
  return StoreInMapping(file.value().get());
}

}  // namespace fsop
