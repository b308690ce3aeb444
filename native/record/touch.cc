// First touches: what is captured, once per span and lane.
#include <sys/stat.h>

#include <algorithm>

#include "record/attributes.h"
#include "record/recorder_impl.h"

namespace record {
namespace {

// A Data record holds at most this many extents; a file in more pieces takes several records.
constexpr size_t kMaxExtentsPerRecord = 100000;

// Keeps `shared` right when a lane comes along.
void NoteLane(TouchState& state, Stamp stamp) {
  bool touched_in_epoch = false;
  for (const Stamp earlier : {state.attrs, state.data, state.born}) {
    if (earlier >> 32 != stamp >> 32) continue;
    touched_in_epoch = true;
    if (earlier != stamp) state.shared = true;
  }
  if (!touched_in_epoch) state.shared = false;
}

bool BornHere(const TouchState& state, Stamp stamp) { return state.born == stamp && !state.shared; }

uint64_t EndOf(uint64_t offset, uint64_t length) { return length > UINT64_MAX - offset ? UINT64_MAX : offset + length; }

}  // namespace

bool RecorderImpl::Covered(const TouchState& state, const Wanted& wanted, Stamp stamp) {
  if (BornHere(state, stamp)) return true;
  if (wanted.attrs && state.attrs != stamp) return false;
  if (!wanted.data || state.data == stamp) return true;
  if (state.object == journal::kNoObject) return false;
  const std::shared_ptr<ChunkRow> row = chunks_.Find(state.object, stamp);
  if (row == nullptr) return false;
  const uint64_t begin = std::min(wanted.begin, row->first_size);
  const uint64_t end = std::min(wanted.end, row->first_size);
  if (begin >= end) return true;
  const uint64_t to = (end - 1) / options_.chunk_bytes + 1;
  return row->captured.NextMissing(begin / options_.chunk_bytes, to) == to;
}

sys::Result<void> RecorderImpl::TouchEntry(Subject& dir, std::string_view name, Subject* present, Toucher by) {
  const Hand hand = MakeHand(by);
  Wanted wanted;
  wanted.attrs = true;
  if (auto touched = TouchObject(dir, wanted, hand); !touched.ok()) return touched;
  auto dir_id = Bind(dir);
  if (!dir_id.ok()) return Failed(dir_id.error());
  heartbeat_.BeatAt(hand.touch.time_ns);
  if (entries_.Touched(dir_id.value(), name, hand.stamp)) return {};

  const std::string parent_path = PathHint(dir);
  journal::EntryRecord record;
  record.touch = hand.touch;
  record.dir = dir_id.value();
  record.name = name;
  record.parent_path = parent_path;
  sys::Result<void> done;
  if (present == nullptr) {
    done = entries_.Once(record.dir, name, hand.stamp, [&]() -> sys::Result<void> {
      journal::Batch batch;
      batch.Add(record);
      if (auto appended = journal_->Append(&batch); !appended.ok()) return appended.error();
      return {};
    });
  } else {
    const Locked lock(*present);
    TouchState& state = present->touch();
    NoteLane(state, hand.stamp);
    done = entries_.Once(record.dir, name, hand.stamp, [&]() -> sys::Result<void> {
      journal::Batch batch;
      record.object = state.object != journal::kNoObject ? state.object : AddBind(*present, record.dir, name, &batch);
      record.mode = present->identity().mode;
      batch.Add(record);
      if (auto appended = journal_->Append(&batch); !appended.ok()) return appended.error();
      state.object = record.object;
      return {};
    });
  }
  if (!done.ok()) return Failed(done.error());
  counters_.touches.fetch_add(1, std::memory_order_relaxed);
  return {};
}

sys::Result<void> RecorderImpl::TouchAttrs(Subject& object, Toucher by) {
  Wanted wanted;
  wanted.attrs = true;
  const Hand hand = MakeHand(by);
  heartbeat_.BeatAt(hand.touch.time_ns);
  return TouchObject(object, wanted, hand);
}

sys::Result<void> RecorderImpl::TouchData(Subject& object, uint64_t offset, uint64_t length, Toucher by) {
  Wanted wanted;
  wanted.attrs = true;
  wanted.data = length > 0;
  wanted.begin = offset;
  wanted.end = EndOf(offset, length);
  const Hand hand = MakeHand(by);
  heartbeat_.BeatAt(hand.touch.time_ns);
  return TouchObject(object, wanted, hand);
}

sys::Result<void> RecorderImpl::TouchObject(Subject& object, const Wanted& wanted, const Hand& hand) {
  bool bound;
  {
    const Locked lock(object);
    TouchState& state = object.touch();
    NoteLane(state, hand.stamp);
    if (Covered(state, wanted, hand.stamp)) return {};
    bound = state.object != journal::kNoObject;
  }
  ObjectId parent = journal::kNoObject;
  if (!bound) {
    auto bound_parent = BindParents(object);
    if (!bound_parent.ok()) return Failed(bound_parent.error());
    parent = bound_parent.value();
  }
  const std::string path = PathHint(object);
  const Locked lock(object);
  return TouchLocked(object, parent, path, wanted, hand);
}

sys::Result<void> RecorderImpl::TouchLocked(Subject& object, ObjectId parent, const std::string& path,
                                            const Wanted& wanted, const Hand& hand) {
  TouchState& state = object.touch();
  if (Covered(state, wanted, hand.stamp)) return {};  // another thread was first
  journal::Batch batch;
  const ObjectId id =
      state.object != journal::kNoObject ? state.object : AddBind(object, parent, object.name(), &batch);
  Wanted missing = wanted;
  missing.attrs = wanted.attrs && state.attrs != hand.stamp;
  missing.data = wanted.data && state.data != hand.stamp;
  Captured captured;
  captured.path = path;
  if (auto done = Capture(object, id, missing, hand, &captured); !done.ok()) return Failed(done.error());
  if (captured.has_attrs) batch.Add(captured.attrs);
  for (const journal::DataRecord& data : captured.data) batch.Add(data);
  for (const journal::SkippedRecord& skipped : captured.skipped) batch.Add(skipped);
  if (auto appended = journal_->Append(&batch); !appended.ok()) return Failed(appended.error());

  state.object = id;
  if (missing.attrs) state.attrs = hand.stamp;
  if (missing.data && captured.all_data) state.data = hand.stamp;
  if (captured.row != nullptr) {
    ChunkRow& row = *captured.row;
    if (wanted.end >= row.first_size) {
      row.captured.AddTail(captured.chunk_begin);
    } else {
      row.captured.Add(captured.chunk_begin, captured.chunk_end);
    }
    if (captured.new_row) chunks_.Put(id, captured.row);
  }
  counters_.touches.fetch_add(1, std::memory_order_relaxed);
  counters_.captured_bytes.fetch_add(captured.stored_bytes, std::memory_order_relaxed);
  counters_.skipped.fetch_add(captured.skipped.size(), std::memory_order_relaxed);
  return {};
}

sys::Result<void> RecorderImpl::GiveUp(sys::Error error, journal::SkippedWhat what, ObjectId id, const Hand& hand,
                                       Captured* out) {
  if (!options_.skip_on_failure) return error;
  journal::SkippedRecord record;
  record.touch = hand.touch;
  record.object = id;
  record.what = what;
  record.error = error.number;
  record.reason = error.where;
  out->skipped.push_back(record);
  if (what == journal::SkippedWhat::kData) out->all_data = true;
  return {};
}

sys::Result<void> RecorderImpl::Capture(Subject& object, ObjectId id, const Wanted& wanted, const Hand& hand,
                                        Captured* out) {
  sys::UniqueFd fd;
  FdKind kind = FdKind::kReadable;
  if (wanted.data) {
    auto opened = object.OpenRead();
    if (opened.ok()) {
      fd = std::move(opened.value());
    } else if (auto skipped = GiveUp(opened.error(), journal::SkippedWhat::kData, id, hand, out); !skipped.ok()) {
      return skipped;
    }
  }
  const bool readable = fd.valid();
  if (!readable) {
    if (!wanted.attrs) return {};
    auto opened = object.OpenPath();
    if (!opened.ok()) return GiveUp(opened.error(), journal::SkippedWhat::kAttrs, id, hand, out);
    fd = std::move(opened.value());
    kind = FdKind::kPath;
  }
  struct stat st;
  if (fstat(fd.get(), &st) != 0) {
    const sys::Error error = sys::LastError("fstat(project)");
    if (readable) {
      if (auto skipped = GiveUp(error, journal::SkippedWhat::kData, id, hand, out); !skipped.ok()) return skipped;
    }
    return wanted.attrs ? GiveUp(error, journal::SkippedWhat::kAttrs, id, hand, out) : sys::Result<void>();
  }
  if (wanted.attrs) {
    journal::AttrsRecord& attrs = out->attrs;
    attrs.touch = hand.touch;
    attrs.object = id;
    attrs.path = out->path;
    if (auto read = ReadAttributes(fd.get(), kind, st, &attrs); read.ok()) {
      if (!S_ISDIR(st.st_mode)) {
        const Identity identity = object.identity();
        attrs.nlink -= std::min(attrs.nlink, links_->Count(identity.dev, identity.ino));
      }
      out->has_attrs = true;
    } else if (auto skipped = GiveUp(read.error(), journal::SkippedWhat::kAttrs, id, hand, out); !skipped.ok()) {
      return skipped;
    }
  }
  if (!readable || !S_ISREG(st.st_mode)) return {};
  return CaptureData(fd.get(), st.st_dev, static_cast<uint64_t>(st.st_size), id, wanted, hand, out);
}

void RecorderImpl::AddData(ObjectId id, bool whole, uint64_t size, Preimage::Bytes&& bytes, const Hand& hand,
                           Captured* out) {
  out->stored_bytes += bytes.stored;
  journal::DataRecord record;
  record.touch = hand.touch;
  record.object = id;
  record.size = size;
  record.whole = whole && bytes.extents.size() <= kMaxExtentsPerRecord;
  if (bytes.extents.size() <= kMaxExtentsPerRecord) {
    record.extents = std::move(bytes.extents);
    out->data.push_back(std::move(record));
    return;
  }
  for (size_t at = 0; at < bytes.extents.size(); at += kMaxExtentsPerRecord) {
    const auto begin = bytes.extents.begin() + static_cast<ptrdiff_t>(at);
    const auto count = std::min(kMaxExtentsPerRecord, bytes.extents.size() - at);
    record.extents.assign(begin, begin + static_cast<ptrdiff_t>(count));
    out->data.push_back(record);
  }
}

sys::Result<void> RecorderImpl::CaptureData(int fd, uint64_t dev, uint64_t size, ObjectId id, const Wanted& wanted,
                                            const Hand& hand, Captured* out) {
  std::shared_ptr<ChunkRow> row = chunks_.Find(id, hand.stamp);
  const bool first = row == nullptr;
  if (first && size > options_.max_preimage_bytes) {
    // The user's own limit: the change passes whatever on_capture_failure says.
    journal::SkippedRecord record;
    record.touch = hand.touch;
    record.object = id;
    record.what = journal::SkippedWhat::kData;
    record.error = EFBIG;
    record.reason = "larger than max-preimage";
    out->skipped.push_back(record);
    out->all_data = true;
    return {};
  }
  if (first && size <= options_.chunk_threshold_bytes) {
    Preimage::Bytes bytes;
    if (auto copied = preimage_->Copy(fd, 0, size, &bytes); !copied.ok()) {
      return GiveUp(copied.error(), journal::SkippedWhat::kData, id, hand, out);
    }
    const uint64_t end = bytes.end;
    AddData(id, true, end, std::move(bytes), hand, out);
    out->all_data = true;
    return {};
  }
  if (first) {
    if (auto clone = preimage_->Clone(fd, dev)) {
      const uint64_t end = clone->end;
      AddData(id, true, end, std::move(*clone), hand, out);
      out->all_data = true;
      return {};
    }
    row = std::make_shared<ChunkRow>();
    row->stamp = hand.stamp;
    row->first_size = size;
  }
  const uint64_t chunk = options_.chunk_bytes;
  const uint64_t begin = std::min(wanted.begin, row->first_size);
  const uint64_t end = std::min(wanted.end, row->first_size);
  // What begins at the old end needs nothing of the chunk that the end lies in: that one is not captured yet.
  out->chunk_begin = begin < end ? begin / chunk : (begin + chunk - 1) / chunk;
  out->chunk_end = begin < end ? (end - 1) / chunk + 1 : out->chunk_begin;
  Preimage::Bytes bytes;
  for (uint64_t at = out->chunk_begin; at < out->chunk_end;) {
    const uint64_t from = row->captured.NextMissing(at, out->chunk_end);
    at = row->captured.NextPresent(from, out->chunk_end);
    if (from == at) break;
    auto copied = preimage_->Copy(fd, from * chunk, std::min(at * chunk, row->first_size), &bytes);
    if (!copied.ok()) return GiveUp(copied.error(), journal::SkippedWhat::kData, id, hand, out);
  }
  const bool whole = first && out->chunk_begin == 0 && end == row->first_size && bytes.end == row->first_size;
  // Also without extents the first record says what the size was.
  if (first || !bytes.extents.empty()) AddData(id, whole, row->first_size, std::move(bytes), hand, out);
  out->all_data = whole;
  out->row = std::move(row);
  out->new_row = first;
  return {};
}

void RecorderImpl::Born(Subject& object, Toucher by) {
  const Hand hand = MakeHand(by);
  {
    const Locked lock(object);
    TouchState& state = object.touch();
    state.born = hand.stamp;
    state.ever_born = true;
    // Since it was made another lane may have come before us.
    NoteLane(state, hand.stamp);
  }
  // Bound at once, not at its first touch: only so can what a span leaves behind be told from what somebody puts in its
  // place outside the mount, also where inode numbers are used again and there is no birth time.
  if (auto bound = Bind(object); !bound.ok()) counters_.failures.fetch_add(1, std::memory_order_relaxed);
  heartbeat_.BeatAt(hand.touch.time_ns);
}

void RecorderImpl::Moved(Subject& object, Subject& dir, std::string_view name) {
  ObjectId id;
  {
    const Locked lock(object);
    id = object.touch().object;
  }
  if (id != journal::kNoObject) {
    auto dir_id = Bind(dir);
    if (dir_id.ok()) {
      journal::Batch batch;
      batch.Add(journal::MovedRecord{id, dir_id.value(), name});
      AppendOrWait(&batch);
    } else {
      Failed(dir_id.error());
    }
  }
  heartbeat_.Beat();
}

}  // namespace record
