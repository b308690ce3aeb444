// The recorder: decides what is a first touch, keeps pre-images in the store, appends the journal. It knows no FUSE.
// Its only caller on a request's way is the gate, which holds the barrier shared for the whole execution
// (capture, change on the project), so the epoch can't move in between.
// Every function that returns an error has changed nothing on the project; the caller answers the request with that
// errno and does not go on. With on_capture_failure = skip it returns ok and a Skipped record is in the journal
// instead; only when the journal itself can't take that record does it fail all the same (never silent).
//
// Call everything with the engine's own credentials (no fsuid of the caller: the store is 0700) and without holding the
// lock of any object: these functions lock one object at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "record/subject.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace record {

struct Options {
  int store_fd = -1;     // the store folder; the recorder never uses a path to it
  int project_fd = -1;   // the project folder under the mount
  uint64_t session = 0;  // random number of this mount, into every FileHeader and pack header; never 0
  uint64_t next_object = 2;
  uint64_t next_seq = 1;
  uint64_t next_pack = 1;
  uint32_t epoch = 1;                        // epoch of the span that begins with the mount
  uint64_t max_preimage_bytes = UINT64_MAX;  // larger objects' bytes are recorded as skipped
  bool skip_on_failure = false;
  uint64_t chunk_threshold_bytes = 1u << 20;  // larger files: reflink, else only touched chunks
  uint64_t chunk_bytes = 64u << 10;
};

// What `turn begin` and the like say about the span that begins.
struct SpanStart {
  journal::SpanKind kind = journal::SpanKind::kBetween;
  Lane lane = journal::kUserLane;
  uint32_t owner_pid = 0;  // its descendants' touches are of this lane; 0: none named
  std::string token;       // TURNFS_RUN=<token> in the environment marks them too; empty: none
  std::string meta;        // JSON, opaque
};

struct Position {
  uint32_t epoch;
  uint64_t seq;  // of the last record written
  int64_t time_ns;
};

// Where a removed file went.
struct Removed {
  bool nameless = false;  // born in this span: kept in the store only until the kernel forgets it (ForgetNameless)
  std::string place;      // below the store; empty: the bytes were copied, the file is really gone
  sys::UniqueFd pin;      // O_PATH descriptor of it when `place` is empty: nothing else leads to the inode any more
};

struct Counters {
  std::atomic<uint64_t> touches{0}, captured_bytes{0}, preserved{0}, skipped{0}, failures{0};
};

class Recorder {
 public:
  static sys::Result<std::unique_ptr<Recorder>> Open(const Options& options, const SpanStart& first);
  virtual ~Recorder() = default;

  // --- first touches; each is O(1) without I/O when the stamp says it was done ---
  // About to change what `name` in `dir` is; `present` is what it is now (nullptr: free). Also touches dir's
  // attributes.
  virtual sys::Result<void> TouchEntry(Subject& dir, std::string_view name, Subject* present, Toucher by) = 0;
  virtual sys::Result<void> TouchAttrs(Subject& object, Toucher by) = 0;
  // About to change bytes [offset, offset+length) (UINT64_MAX: to the end). Also touches attributes.
  virtual sys::Result<void> TouchData(Subject& object, uint64_t offset, uint64_t length, Toucher by) = 0;

  // --- what happened; never fail the request ---
  // A new object: its later changes in this span by this lane need no capture.
  virtual void Born(Subject& object, Toucher by) = 0;
  // The object is now (also) at dir/name. Binds nothing: an object without an id needs no record.
  virtual void Moved(Subject& object, Subject& dir, std::string_view name) = 0;

  // --- removing ---
  // Removes the file dirfd/name, which is `victim`, by moving it into the store. TouchEntry was called before.
  // Rename; else link and unlink; else (EXDEV, EPERM, EMLINK …) attributes and bytes are captured and it is unlinked.
  virtual sys::Result<Removed> RemoveFile(int dirfd, const char* name, Subject& victim, Toucher by) = 0;
  // About to be replaced by a rename onto dirfd/name: gives the victim a second link in the store first, so that the
  // rename that follows is atomic for everybody; where links can't be made, captures attributes and bytes.
  virtual sys::Result<Removed> SaveReplaced(int dirfd, const char* name, Subject& victim, Toucher by) = 0;
  // The rename did not happen after all: takes the link back.
  virtual void UnsaveReplaced(const Removed& removed, Subject& victim) = 0;
  // A file without any name (O_TMPFILE, or descriptor `fd` of one): a link in the store, so that it can be found again.
  virtual sys::Result<Removed> KeepNameless(int fd, Subject& object) = 0;
  // The kernel has forgotten a nameless inode: its link in the store goes.
  virtual void ForgetNameless(const std::string& place, ObjectId object) = 0;

  // --- the door: what a rewind moves between store and project (place is below the store) ---
  virtual void StoredAt(Subject& object, const std::string& place) = 0;   // journal: Preserved
  virtual void TakenFrom(Subject& object, const std::string& place) = 0;  // journal: Dropped

  // How many links of this inode are in the store (preserved in this session or an earlier one): st_nlink hides them.
  // Loads the shard of preserved/ it needs on first use.
  virtual uint32_t StoreLinks(uint64_t dev, uint64_t ino) = 0;
  // The place of one of them ("" when there is none), a way to reach an inode that has no name in the project.
  virtual std::string StoredPlace(uint64_t dev, uint64_t ino) = 0;

  // --- spans; the caller holds the barrier exclusively for Advance ---
  virtual sys::Result<Position> Advance(const SpanStart& next) = 0;
  // Ends the current journal file with a Seal and begins another. Returns the position reached.
  virtual sys::Result<Position> Seal() = 0;
  // Pre-images and journal to stable storage, if anything was appended since the last call.
  virtual sys::Result<void> Sync() = 0;
  virtual void Unmounted() = 0;
  // Stores the present time in the store's `heartbeat` file: the engine was alive and is the author of changes up to
  // now. Call after each change on the project, before the reply. A clock read and a store, no I/O.
  virtual void Heartbeat() = 0;
  virtual const Counters& counters() const = 0;
  virtual Position position() const = 0;
  virtual uint64_t next_object() const = 0;
  virtual uint64_t next_pack() const = 0;
  // An earlier turn's owner, whose left-over processes' touches stay in that turn's lane.
  virtual void AddLaneOwner(Lane lane, uint32_t pid, const std::string& token) = 0;
};

}  // namespace record
