// Acting for the caller. The kernel has checked permissions (default_permissions); what is left for the engine is that
// new files belong to the caller, that its umask and set-uid clearing hold, and that quotas and reserved blocks bind
// it. Everything here is per thread: raw system calls, because glibc's wrappers change all threads.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sys {

// Once in each worker thread, before its first request: an own umask, and no CAP_SYS_RESOURCE.
// False: the thread could not get its own umask (errno).
bool PrepareWorkerThread();

// For the time of one call, creates belong to uid/gid and are masked by `umask`. Only a root engine changes ids. The
// capabilities that pass permission checks stay (the check was made for the caller already), CAP_FSETID does not unless
// the caller is root.
class ActAs {
 public:
  ActAs(uid_t uid, gid_t gid, mode_t umask);
  ~ActAs();
  ActAs(const ActAs&) = delete;

 private:
  bool changed_ = false;
};

// For the time of one call without CAP_FSETID: the kernel asked for set-uid clearing.
class WithoutFsetid {
 public:
  explicit WithoutFsetid(bool wanted);
  ~WithoutFsetid();
  WithoutFsetid(const WithoutFsetid&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace sys
