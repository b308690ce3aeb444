#include "session/truncate_watch.h"

namespace session {

void TruncateWatch::Begin(uint64_t nodeid) {
  std::lock_guard lock(mutex_);
  ++in_flight_[nodeid];
  if (flushing_) overlapped_.insert(nodeid);
}

void TruncateWatch::End(uint64_t nodeid) {
  std::lock_guard lock(mutex_);
  auto it = in_flight_.find(nodeid);
  if (it != in_flight_.end() && --it->second == 0) in_flight_.erase(it);
}

void TruncateWatch::FlushBegin() {
  std::lock_guard lock(mutex_);
  flushing_ = true;
  overlapped_.clear();
  for (const auto& [nodeid, count] : in_flight_) overlapped_.insert(nodeid);
}

bool TruncateWatch::FlushEnd() {
  std::lock_guard lock(mutex_);
  flushing_ = false;
  if (flushes_ == 0)
    missed_ = overlapped_;
  else
    std::erase_if(missed_, [this](uint64_t nodeid) { return !overlapped_.contains(nodeid); });
  ++flushes_;
  bool again = !missed_.empty() && flushes_ < kMostFlushes;
  if (!again) {
    flushes_ = 0;
    missed_.clear();
  }
  return again;
}

}  // namespace session
