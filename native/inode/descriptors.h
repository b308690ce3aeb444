// A bounded cache of descriptors; the one to use longest ago is closed first. A FdRef keeps its descriptor open while
// it is used.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "sys/fd.h"

namespace inode {

class FdRef {
 public:
  FdRef() = default;
  explicit FdRef(std::shared_ptr<sys::UniqueFd> fd) : fd_(std::move(fd)) {}
  int get() const { return fd_ ? fd_->get() : -1; }
  explicit operator bool() const { return fd_ != nullptr; }

 private:
  friend class DescriptorCache;
  std::shared_ptr<sys::UniqueFd> fd_;
};

// What a cached descriptor can do.
enum class FdKind : uint8_t { kPath, kRead, kWrite };

class DescriptorCache {
 public:
  explicit DescriptorCache(size_t capacity) : capacity_(capacity) {}

  // Empty when there is none; else it counts as used now.
  FdRef Get(uint64_t nodeid, FdKind kind);
  // Keeps `fd`, unless another thread was first: then that one's is returned and `fd` closed.
  FdRef Put(uint64_t nodeid, FdKind kind, sys::UniqueFd fd);
  // Takes a node's descriptors out; they close when the last of these is destroyed.
  std::array<FdRef, 3> Take(uint64_t nodeid);
  // Drops the half that was not used for longest (for EMFILE). False: there was nothing to drop.
  bool DropHalf();
  size_t size() const;

 private:
  struct Entry {
    uint64_t key;
    FdRef fd;
  };
  using Order = std::list<Entry>;  // most recently used first

  static uint64_t KeyOf(uint64_t nodeid, FdKind kind) { return nodeid << 2 | static_cast<uint64_t>(kind); }
  // Takes the entry out that is best closed, into `closing`. Prefers one that nobody uses: closing another frees
  // nothing yet.
  void Evict(Order* closing);

  const size_t capacity_;
  mutable std::mutex mutex_;  // guards what follows; descriptors are closed without it
  Order order_;
  std::unordered_map<uint64_t, Order::iterator> entries_;
};

}  // namespace inode
