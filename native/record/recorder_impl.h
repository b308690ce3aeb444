// The recorder's parts and how they are joined. The methods stand by subject: recorder.cc (opening, spans), bind.cc
// (objects), touch.cc (first touches), remove.cc (files that go into the store).
//
// Every touch goes: who (process, lane → stamp) → object lock → compare stamps → capture into packs → append records →
// set stamps → unlock. Stamps are set last, so a touch that failed is captured by the next try.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/records.h"
#include "journal/writer.h"
#include "pack/blobs.h"
#include "pack/writer.h"
#include "record/chunk_table.h"
#include "record/entry_set.h"
#include "record/heartbeat.h"
#include "record/preimage.h"
#include "record/process_table.h"
#include "record/recorder.h"
#include "record/side_threads.h"
#include "record/stored_links.h"

namespace record {

// Holds a Subject's lock.
class Locked {
 public:
  explicit Locked(Subject& subject) : subject_(subject) { subject_.Lock(); }
  ~Locked() { subject_.Unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Subject& subject_;
};

class RecorderImpl final : public Recorder {
 public:
  explicit RecorderImpl(const Options& options);
  ~RecorderImpl() override;
  sys::Result<void> Start(const SpanStart& first);

  sys::Result<void> TouchEntry(Subject& dir, std::string_view name, Subject* present, Toucher by) override;
  sys::Result<void> TouchAttrs(Subject& object, Toucher by) override;
  sys::Result<void> TouchData(Subject& object, uint64_t offset, uint64_t length, Toucher by) override;
  void Born(Subject& object, Toucher by) override;
  void Moved(Subject& object, Subject& dir, std::string_view name) override;
  sys::Result<Removed> RemoveFile(int dirfd, const char* name, Subject& victim, Toucher by) override;
  sys::Result<Removed> SaveReplaced(int dirfd, const char* name, Subject& victim, Toucher by) override;
  void UnsaveReplaced(const Removed& removed, Subject& victim) override;
  sys::Result<Removed> KeepNameless(int fd, Subject& object) override;
  void ForgetNameless(const std::string& place, ObjectId object) override;
  void StoredAt(Subject& object, const std::string& place) override;
  void TakenFrom(Subject& object, const std::string& place) override;
  uint32_t StoreLinks(uint64_t dev, uint64_t ino) override { return links_->Count(dev, ino); }
  std::string StoredPlace(uint64_t dev, uint64_t ino) override { return links_->Place(dev, ino); }
  sys::Result<Position> Advance(const SpanStart& next) override;
  sys::Result<Position> Seal() override;
  sys::Result<void> Sync() override;
  void Unmounted() override;
  void Heartbeat() override { heartbeat_.Beat(); }
  const Counters& counters() const override { return counters_; }
  Position position() const override;
  uint64_t next_object() const override { return next_object_.load(std::memory_order_relaxed); }
  uint64_t next_pack() const override { return numbers_.next(); }
  void AddLaneOwner(Lane lane, uint32_t pid, const std::string& token) override;

 private:
  // The toucher of one call, and its stamp in the present epoch.
  struct Hand {
    Who who;
    Stamp stamp = 0;
    journal::Touch touch;
  };

  // What a first touch has to capture.
  struct Wanted {
    bool attrs = false;
    bool data = false;
    uint64_t begin = 0, end = 0;  // of the data
  };

  // Pre-image of one object, ready to be appended.
  struct Captured {
    journal::AttrsRecord attrs;
    bool has_attrs = false;
    std::vector<journal::DataRecord> data;
    bool all_data = false;          // no byte of it needs capturing again for this stamp
    std::shared_ptr<ChunkRow> row;  // chunk by chunk: gets chunks [chunk_begin, chunk_end)
    bool new_row = false;
    uint64_t chunk_begin = 0, chunk_end = 0;
    std::vector<journal::SkippedRecord> skipped;
    std::string path;  // what attrs.path shows
    uint64_t stored_bytes = 0;
  };

  Hand MakeHand(Toucher by);
  uint32_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

  // --- bind.cc ---
  bool IsRoot(const Identity& identity) const { return identity.dev == 0 && identity.ino == root_ino_; }
  bool IsStore(const Identity& identity) const { return identity.dev == store_dev_ && identity.ino == store_ino_; }
  // The object id of the subject's parent, bound if need be with all above it; 0: the project folder's, or not known.
  // No lock held.
  sys::Result<ObjectId> BindParents(Subject& subject);
  // Binds the subject and all above it. No lock held.
  sys::Result<ObjectId> Bind(Subject& subject);
  // Adds the Bind record of an unbound subject; its lock is held, its parent is bound. The caller sets the id in its
  // touch state when the record is in the journal.
  ObjectId AddBind(Subject& subject, ObjectId parent, std::string_view name, journal::Batch* batch);
  // Path below the project, for people.
  static std::string PathHint(Subject& subject);

  // --- touch.cc ---
  bool Covered(const TouchState& state, const Wanted& wanted, Stamp stamp);
  // No lock held.
  sys::Result<void> TouchObject(Subject& object, const Wanted& wanted, const Hand& hand);
  // The lock is held; an unbound object gets `parent`, which is bound.
  sys::Result<void> TouchLocked(Subject& object, ObjectId parent, const std::string& path, const Wanted& wanted,
                                const Hand& hand);
  sys::Result<void> Capture(Subject& object, ObjectId id, const Wanted& wanted, const Hand& hand, Captured* out);
  sys::Result<void> CaptureData(int fd, uint64_t dev, uint64_t size, ObjectId id, const Wanted& wanted,
                                const Hand& hand, Captured* out);
  void AddData(ObjectId id, bool whole, uint64_t size, Preimage::Bytes&& bytes, const Hand& hand, Captured* out);
  // With skip_on_failure: notes it in *out and gives ok. Else gives the error back.
  sys::Result<void> GiveUp(sys::Error error, journal::SkippedWhat what, ObjectId id, const Hand& hand, Captured* out);
  sys::Error Failed(sys::Error error);

  // --- remove.cc ---
  // Calls `remove(born)` with the victim's lock held; unless it was born in this span by this lane, it is bound.
  template <typename Remove>
  sys::Result<Removed> WithVictim(Subject& victim, const Hand& hand, Remove remove);
  std::string NewPlace(bool nameless, const Identity& identity, ObjectId object);
  // These three give 0 or an errno.
  int RenameIntoStore(int dirfd, const char* name, const std::string& place);
  int LinkIntoStore(int dirfd, const char* name, int flags, const std::string& place);
  template <typename Call>
  int IntoShard(const std::string& place, Call call);
  bool Holds(const std::string& place, const Identity& identity);
  // Attributes and bytes of the victim into the store; gives its pin.
  sys::Result<Removed> CopyVictim(Subject& victim, const Hand& hand);
  sys::Result<Removed> RemoveBorn(int dirfd, const char* name, Subject& victim);
  sys::Result<Removed> RemovePreserving(int dirfd, const char* name, Subject& victim, const Hand& hand);
  sys::Result<void> AppendPreserved(ObjectId object, const std::string& place, journal::PreservedHow how);
  void AppendDropped(ObjectId object, const std::string& place);
  Removed Stored(bool nameless, const Identity& identity, std::string place);

  void AppendOrWait(journal::Batch* batch);

  const Options options_;
  uint64_t project_dev_ = 0, root_ino_ = 0;  // set by Start
  uint64_t store_dev_ = 0, store_ino_ = 0;   // as in identities: 0 is the project's filesystem
  bool inodes_stay_ = true;                  // a file keeps its inode number when it is renamed
  sys::UniqueFd journal_fd_, packs_fd_, blobs_fd_;

  Counters counters_;
  std::atomic<uint32_t> epoch_;
  std::atomic<int64_t> span_time_ns_{0};
  std::atomic<uint64_t> next_object_;
  std::atomic<uint64_t> place_number_;
  pack::Numbers numbers_;
  record::Heartbeat heartbeat_;
  EntrySet entries_;
  ChunkTable chunks_;

  std::unique_ptr<StoredLinks> links_;
  std::unique_ptr<journal::Writer> journal_;
  std::unique_ptr<pack::Writer> packs_;
  std::unique_ptr<pack::Blobs> blobs_;
  std::unique_ptr<Preimage> preimage_;
  std::unique_ptr<SideThreads> side_;
  std::shared_ptr<ProcessTable> processes_;
};

}  // namespace record
