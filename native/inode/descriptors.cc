#include "inode/descriptors.h"

namespace inode {

FdRef DescriptorCache::Get(uint64_t nodeid, FdKind kind) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = entries_.find(KeyOf(nodeid, kind));
  if (found == entries_.end()) return {};
  order_.splice(order_.begin(), order_, found->second);
  return found->second->fd;
}

FdRef DescriptorCache::Put(uint64_t nodeid, FdKind kind, sys::UniqueFd fd) {
  FdRef kept(std::make_shared<sys::UniqueFd>(std::move(fd)));
  Order closing;  // outlives the lock: closing the last descriptor of an unlinked file can take long
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t key = KeyOf(nodeid, kind);
  auto found = entries_.find(key);
  if (found != entries_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    return found->second->fd;
  }
  while (!order_.empty() && order_.size() >= capacity_) Evict(&closing);
  order_.push_front(Entry{key, kept});
  entries_.emplace(key, order_.begin());
  return kept;
}

std::array<FdRef, 3> DescriptorCache::Take(uint64_t nodeid) {
  std::array<FdRef, 3> taken;
  std::lock_guard<std::mutex> lock(mutex_);
  for (FdKind kind : {FdKind::kPath, FdKind::kRead, FdKind::kWrite}) {
    auto found = entries_.find(KeyOf(nodeid, kind));
    if (found == entries_.end()) continue;
    taken[static_cast<size_t>(kind)] = std::move(found->second->fd);
    order_.erase(found->second);
    entries_.erase(found);
  }
  return taken;
}

bool DescriptorCache::DropHalf() {
  Order closing;
  std::lock_guard<std::mutex> lock(mutex_);
  size_t count = (order_.size() + 1) / 2;
  for (size_t dropped = 0; dropped < count; dropped++) Evict(&closing);
  return count > 0;
}

size_t DescriptorCache::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return order_.size();
}

void DescriptorCache::Evict(Order* closing) {
  constexpr int kLooked = 16;
  auto victim = std::prev(order_.end());
  auto candidate = victim;
  for (int looked = 0; looked < kLooked; looked++) {
    if (candidate->fd.fd_.use_count() == 1) {
      victim = candidate;
      break;
    }
    if (candidate == order_.begin()) break;
    --candidate;
  }
  entries_.erase(victim->key);
  closing->splice(closing->end(), order_, victim);
}

}  // namespace inode
