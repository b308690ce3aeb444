// A bounded cache of descriptors; the one to use longest ago is closed first. A FdRef keeps its descriptor open while it is used.
#pragma once

#include <memory>

#include "sys/fd.h"

namespace inode {

class FdRef {
 public:
  FdRef() = default;
  explicit FdRef(std::shared_ptr<sys::UniqueFd> fd) : fd_(std::move(fd)) {}
  int get() const { return fd_ ? fd_->get() : -1; }

 private:
  std::shared_ptr<sys::UniqueFd> fd_;
};

// The cache itself: see descriptors.cc.

}  // namespace inode
