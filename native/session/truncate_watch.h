// Which inodes' size was being set while a barrier's flush ran. The kernel does not write back dirty mapped pages of
// such an inode until the SETATTR is answered (seen on 6.18), so a flush that overlapped one must be done again for it.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace session {

class TruncateWatch {
 public:
  void Begin(uint64_t nodeid);
  void End(uint64_t nodeid);

  void FlushBegin();
  // True while another flush is needed. Only the inodes that the first flush missed count, so that programs which go on
  // truncating other files don't hold the barrier up; and after kMostFlushes it gives up: such pages may then fall on
  // either side.
  bool FlushEnd();

  // Begin and End around one execution; `watch` may be nullptr.
  class Span {
   public:
    Span(TruncateWatch* watch, uint64_t nodeid) : watch_(watch), nodeid_(nodeid) {
      if (watch_ != nullptr) watch_->Begin(nodeid_);
    }
    ~Span() {
      if (watch_ != nullptr) watch_->End(nodeid_);
    }
    Span(const Span&) = delete;

   private:
    TruncateWatch* watch_;
    uint64_t nodeid_;
  };

 private:
  static constexpr int kMostFlushes = 50;

  std::mutex mutex_;  // guards all; a leaf lock
  std::unordered_map<uint64_t, int> in_flight_;
  bool flushing_ = false;
  int flushes_ = 0;                          // of the barrier at hand; 0: none
  std::unordered_set<uint64_t> overlapped_;  // by the flush at hand
  std::unordered_set<uint64_t> missed_;      // by all flushes of this barrier so far
};

}  // namespace session
