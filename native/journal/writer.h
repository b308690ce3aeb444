// Appends records to the journal. Called from every worker thread of the engine and from the recorder's side threads.
//
// An append is one pwrite under the mutex; all its records get into the file, or none: what a failed write left is
// overwritten with zeros, so the chain of frames stays whole. Space is allocated ahead, and a second file of zeros lies
// ready (`journal/reserve`), so that the small records of an unlink or a rename can still be written on a full disk.
// A file is sealed at kRotateBytes, and cut to its length.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "journal/records.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace journal {

constexpr uint64_t kRotateBytes = 8u << 20;

class Writer {
 public:
  struct Options {
    int journal_fd = -1;  // the folder; stays the caller's
    uint64_t next_seq = 1;
    uint64_t session = 0;
    uint64_t rotate_bytes = kRotateBytes;
    uint64_t step_bytes = 1u << 20;     // allocated ahead in the open file
    uint64_t reserve_bytes = 4u << 20;  // size of the reserve
  };

  static sys::Result<std::unique_ptr<Writer>> Open(const Options& options);
  // Leaves the file as it is, unsealed: like a crash. Close() ends in order.
  ~Writer() = default;

  // Writes all records of the batch; gives the seq of the last one. The batch is used up only on success.
  sys::Result<uint64_t> Append(Batch* batch);
  // For records of what has already happened. When they can't be written now they wait in memory and go in front of the
  // next append, which fails while they can't be written: order is kept and nothing is lost in silence.
  // Returns false when they had to wait.
  bool AppendOrWait(Batch* batch);
  // Ends the current file; nothing to do when it has no records but its header.
  sys::Result<uint64_t> Seal();
  // What was appended before the call is on stable storage.
  sys::Result<void> Sync();
  // Seals, cuts the file to its length and removes the reserve.
  sys::Result<void> Close();

  uint64_t last_seq() const { return last_seq_.load(std::memory_order_acquire); }
  uint64_t synced_seq() const { return synced_seq_.load(std::memory_order_acquire); }

 private:
  struct File {
    sys::UniqueFd fd;
    std::string name;
    uint64_t end = 0;        // behind the last record
    uint64_t allocated = 0;  // space is certain up to here
    bool header_only = true;
  };

  explicit Writer(const Options& options) : options_(options) {}

  // All below: mutex_ held.
  sys::Result<void> Begin(uint64_t seq, File* file);
  sys::Result<void> Rotate();
  sys::Result<void> Write(const Batch& batch);
  void AllocateAhead(uint64_t need);
  sys::Result<sys::UniqueFd> CreateEmpty(const char* name, uint64_t* allocated);
  void MakeReserve();
  void Erase(uint64_t from, uint64_t size);

  const Options options_;
  std::atomic<uint64_t> last_seq_{0};
  std::atomic<uint64_t> synced_seq_{0};

  std::mutex sync_mutex_;  // one Sync at a time; taken before mutex_

  std::mutex mutex_;  // guards everything below
  std::shared_ptr<File> file_;
  sys::UniqueFd reserve_;
  uint64_t reserve_allocated_ = 0;
  Batch waiting_;
  Batch scratch_;
  std::vector<std::shared_ptr<File>> unsynced_;  // sealed files that were not synced yet
  bool name_unsynced_ = false;                   // a file was given its name since the last sync
  bool can_allocate_ = true;
  uint64_t retry_allocation_at_ = 0;
  int broken_ = 0;  // errno: a half record could not be taken back; nothing may be appended any more
};

}  // namespace journal
