#include "sys/credentials.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sys {
namespace {

constexpr uint64_t Bit(int capability) { return uint64_t{1} << capability; }

// What this thread may use at most; set by PrepareWorkerThread.
thread_local uint64_t permitted = 0;
thread_local uint64_t usual = 0;

void SetEffective(uint64_t effective) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  for (int i = 0; i < 2; ++i) {
    data[i].effective = static_cast<uint32_t>(effective >> (32 * i));
    data[i].permitted = static_cast<uint32_t>(permitted >> (32 * i));
  }
  syscall(SYS_capset, &header, data);
}

bool IsRootEngine() {
  static const bool root = geteuid() == 0;
  return root;
}

}  // namespace

bool PrepareWorkerThread() {
  if (unshare(CLONE_FS) != 0) return false;
  umask(0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) == 0) {
    permitted = data[0].permitted | (uint64_t{data[1].permitted} << 32);
    uint64_t effective = data[0].effective | (uint64_t{data[1].effective} << 32);
    usual = effective & ~Bit(CAP_SYS_RESOURCE);
    SetEffective(usual);
  }
  return true;
}

ActAs::ActAs(uid_t uid, gid_t gid, mode_t mask) {
  umask(mask);
  if (!IsRootEngine() || (uid == 0 && gid == 0)) return;
  changed_ = true;
  syscall(SYS_setfsgid, gid);
  syscall(SYS_setfsuid, uid);
  // Leaving uid 0 took the file system capabilities out of the effective set: put them back, without CAP_FSETID for
  // other users.
  SetEffective(uid == 0 ? usual : usual & ~Bit(CAP_FSETID));
}

ActAs::~ActAs() {
  umask(0);
  if (!changed_) return;
  syscall(SYS_setfsuid, 0);
  syscall(SYS_setfsgid, 0);
  SetEffective(usual);
}

WithoutFsetid::WithoutFsetid(bool wanted) {
  if (!wanted || (usual & Bit(CAP_FSETID)) == 0) return;
  changed_ = true;
  SetEffective(usual & ~Bit(CAP_FSETID));
}

WithoutFsetid::~WithoutFsetid() {
  if (changed_) SetEffective(usual);
}

}  // namespace sys
