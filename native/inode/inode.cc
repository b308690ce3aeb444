#include "inode/inode.h"

#include <fcntl.h>

#include <cstdlib>
#include <cstring>

#include "inode/table.h"

namespace inode {

Inode::~Inode() { free(name_); }

void Inode::SetName(std::string_view name) {
  char* copy = nullptr;
  if (!name.empty()) {
    copy = static_cast<char*>(malloc(name.size()));
    if (copy == nullptr) abort();  // as operator new does in a build without exceptions
    memcpy(copy, name.data(), name.size());
  }
  free(name_);
  name_ = copy;
  name_bytes_ = static_cast<uint16_t>(name.size());
}

void Inode::Lock() { table_->ObjectLock(*this).lock(); }

void Inode::Unlock() { table_->ObjectLock(*this).unlock(); }

record::Identity Inode::identity() {
  return record::Identity{.dev = dev_, .ino = ino_, .birth_ns = birth_ns_, .mode = type_, .handle = handle_.Encode()};
}

sys::Result<sys::UniqueFd> Inode::OpenPath() { return table_->OpenFresh(*this, O_PATH | O_NOFOLLOW); }

sys::Result<sys::UniqueFd> Inode::OpenRead() {
  auto fd = table_->OpenFresh(*this, O_RDONLY | O_NOATIME);
  // O_NOATIME is for the owner and for root; some filesystems refuse it altogether.
  if (!fd.ok() && fd.error().number == EPERM) return table_->OpenFresh(*this, O_RDONLY);
  return fd;
}

record::Subject* Inode::parent() { return table_->LendParent(*this); }

std::string Inode::name() { return table_->NameOf(*this); }

void Ref::Release() { inode_->table_->Unreference(*inode_); }

}  // namespace inode
