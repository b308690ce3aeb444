#include "gate/gate.h"

#include <sys/random.h>

#include <cerrno>
#include <mutex>

namespace gate {
namespace {

constexpr std::string_view kStoreName = ".turnfs";
constexpr std::string_view kDoorPrefix = ".turnfs-door-";

bool IsProjectTop(const inode::Inode& dir) { return dir.nodeid() == 1; }

}  // namespace

Gate::Gate(inode::Table& inodes, record::Recorder& recorder) : inodes_(inodes), recorder_(recorder) {}

int Gate::CheckVisible(inode::Inode& dir, std::string_view name) const {
  if (!IsProjectTop(dir)) return 0;
  if (name == kStoreName) return ENOENT;
  if (name.starts_with(kDoorPrefix) && !IsDoor(dir, name)) return ENOENT;
  return 0;
}

int Gate::CheckChangeable(inode::Inode& dir, std::string_view name) const {
  if (!IsProjectTop(dir)) return 0;
  return name == kStoreName || name.starts_with(kDoorPrefix) ? EPERM : 0;
}

std::string Gate::OpenDoor() {
  unsigned char random[16];
  size_t got = 0;
  while (got < sizeof(random)) {
    ssize_t n = getrandom(random + got, sizeof(random) - got, 0);
    if (n > 0) got += static_cast<size_t>(n);
  }
  std::string name(kDoorPrefix);
  for (unsigned char byte : random) {
    constexpr char kHex[] = "0123456789abcdef";
    name += kHex[byte >> 4];
    name += kHex[byte & 15];
  }
  std::unique_lock lock(door_mutex_);
  // A door that is open stays the same: a flush and a rewind may both be using it.
  if (door_.empty()) door_ = name;
  return door_;
}

void Gate::CloseDoor() {
  std::unique_lock lock(door_mutex_);
  door_.clear();
}

bool Gate::IsDoor(inode::Inode& dir, std::string_view name) const {
  if (!IsProjectTop(dir) || !name.starts_with(kDoorPrefix)) return false;
  std::shared_lock lock(door_mutex_);
  return name == door_;
}

sys::Result<Pass> Gate::MutateEntry(inode::Inode& dir, std::string_view name, inode::Inode* present,
                                    record::Toucher by) {
  Pass pass(Enter(), recorder_);
  if (dir.realm() == inode::Realm::kProject) {
    auto touched = recorder_.TouchEntry(dir, name, present, by);
    if (!touched.ok()) return touched.error();
  }
  return pass;
}

sys::Result<Pass> Gate::MutateEntries(inode::Inode& dir, std::string_view name, inode::Inode* present,
                                      inode::Inode& to_dir, std::string_view to_name, inode::Inode* to_present,
                                      record::Toucher by) {
  Pass pass(Enter(), recorder_);
  if (dir.realm() == inode::Realm::kProject) {
    auto touched = recorder_.TouchEntry(dir, name, present, by);
    if (!touched.ok()) return touched.error();
  }
  if (to_dir.realm() == inode::Realm::kProject) {
    auto touched = recorder_.TouchEntry(to_dir, to_name, to_present, by);
    if (!touched.ok()) return touched.error();
  }
  return pass;
}

sys::Result<Pass> Gate::MutateAttrs(inode::Inode& object, record::Toucher by) {
  Pass pass(Enter(), recorder_);
  if (object.realm() == inode::Realm::kProject) {
    auto touched = recorder_.TouchAttrs(object, by);
    if (!touched.ok()) return touched.error();
  }
  return pass;
}

sys::Result<Pass> Gate::MutateBytes(inode::Inode& object, uint64_t offset, uint64_t length, record::Toucher by) {
  Pass pass(Enter(), recorder_);
  if (object.realm() == inode::Realm::kProject) {
    auto touched = recorder_.TouchData(object, offset, length, by);
    if (!touched.ok()) return touched.error();
  }
  return pass;
}

Pass Gate::MakeNameless() { return Pass(Enter(), recorder_); }

}  // namespace gate
