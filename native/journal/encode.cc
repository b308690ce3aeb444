// Records to frames (see records.h).
#include <algorithm>
#include <bit>
#include <cstring>

#include "hash/crc32c.h"
#include "journal/records.h"

namespace journal {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Only hints can be longer than a str holds (names are at most 255 bytes, places short); a hint may be cut.
void PutStr(std::string& out, std::string_view text) {
  text = text.substr(0, std::min<size_t>(text.size(), UINT16_MAX));
  Put(out, static_cast<uint16_t>(text.size()));
  out.append(text);
}

void PutBlob(std::string& out, std::string_view bytes) {
  Put(out, static_cast<uint32_t>(bytes.size()));
  out.append(bytes);
}

void PutTouch(std::string& out, const Touch& touch) {
  Put(out, touch.epoch);
  Put(out, touch.lane);
  Put(out, touch.proc);
  Put(out, touch.time_ns);
}

}  // namespace

void Batch::Begin(RecordType type) {
  frames_.push_back(bytes_.size());
  bytes_.append(kFrameHeaderBytes, '\0');
  const auto number = static_cast<uint16_t>(type);
  memcpy(bytes_.data() + frames_.back() + 16, &number, sizeof number);
}

void Batch::End() {
  const size_t length = bytes_.size() - frames_.back() - kFrameHeaderBytes;
  if (length > kMaxPayloadBytes) oversize_ = true;
  const auto stored = static_cast<uint32_t>(length);
  memcpy(bytes_.data() + frames_.back() + 4, &stored, sizeof stored);
}

void Batch::Add(const FileHeader& r) {
  Begin(r.kType);
  Put(bytes_, kFileMagic);
  Put(bytes_, kVersion);
  Put(bytes_, r.session);
  Put(bytes_, r.time_ns);
  End();
}

void Batch::Add(const SpanRecord& r) {
  Begin(r.kType);
  Put(bytes_, r.epoch);
  Put(bytes_, r.kind);
  Put(bytes_, r.lane);
  Put(bytes_, r.time_ns);
  PutBlob(bytes_, r.meta);
  End();
}

void Batch::Add(const ProcessRecord& r) {
  Begin(r.kType);
  Put(bytes_, r.proc);
  Put(bytes_, r.pid);
  Put(bytes_, r.start_ticks);
  Put(bytes_, r.lane);
  PutStr(bytes_, r.comm);
  PutBlob(bytes_, r.command);
  End();
}

void Batch::Add(const BindRecord& r) {
  Begin(r.kType);
  Put(bytes_, r.object);
  Put(bytes_, static_cast<uint8_t>(r.born));
  Put(bytes_, r.mode);
  Put(bytes_, r.dev);
  Put(bytes_, r.ino);
  Put(bytes_, r.birth_ns);
  Put(bytes_, r.parent);
  PutStr(bytes_, r.name);
  PutStr(bytes_, r.handle);
  End();
}

void Batch::Add(const EntryRecord& r) {
  Begin(r.kType);
  PutTouch(bytes_, r.touch);
  Put(bytes_, r.dir);
  PutStr(bytes_, r.name);
  Put(bytes_, r.object);
  Put(bytes_, r.mode);
  PutStr(bytes_, r.parent_path);
  End();
}

void Batch::Add(const AttrsRecord& r) {
  Begin(r.kType);
  PutTouch(bytes_, r.touch);
  Put(bytes_, r.object);
  Put(bytes_, r.mode);
  Put(bytes_, r.uid);
  Put(bytes_, r.gid);
  Put(bytes_, r.size);
  Put(bytes_, r.mtime_ns);
  Put(bytes_, r.ctime_ns);
  Put(bytes_, r.rdev);
  Put(bytes_, r.nlink);
  Put(bytes_, static_cast<uint16_t>(r.xattrs.size()));
  for (const Xattr& xattr : r.xattrs) {
    PutStr(bytes_, xattr.name);
    PutBlob(bytes_, xattr.value);
  }
  PutBlob(bytes_, r.target);
  PutStr(bytes_, r.path);
  End();
}

void Batch::Add(const DataRecord& r) {
  Begin(r.kType);
  PutTouch(bytes_, r.touch);
  Put(bytes_, r.object);
  Put(bytes_, static_cast<uint8_t>(r.whole));
  Put(bytes_, r.size);
  Put(bytes_, static_cast<uint32_t>(r.extents.size()));
  for (const Extent& extent : r.extents) {
    Put(bytes_, extent.offset);
    Put(bytes_, extent.length);
    Put(bytes_, extent.kind);
    Put(bytes_, extent.file);
    Put(bytes_, extent.file_offset);
    Put(bytes_, extent.xxh64);
  }
  End();
}

void Batch::Add(const PreservedRecord& r) {
  Begin(r.kType);
  Put(bytes_, r.object);
  PutStr(bytes_, r.place);
  Put(bytes_, r.how);
  End();
}

void Batch::Add(const MovedRecord& r) {
  Begin(r.kType);
  Put(bytes_, r.object);
  Put(bytes_, r.dir);
  PutStr(bytes_, r.name);
  End();
}

void Batch::Add(const SkippedRecord& r) {
  Begin(r.kType);
  PutTouch(bytes_, r.touch);
  Put(bytes_, r.object);
  Put(bytes_, r.dir);
  PutStr(bytes_, r.name);
  Put(bytes_, r.what);
  Put(bytes_, r.error);
  PutStr(bytes_, r.reason);
  End();
}

void Batch::Add(const UnmountRecord& r) {
  Begin(r.kType);
  Put(bytes_, r.time_ns);
  End();
}

void Batch::Add(const DroppedRecord& r) {
  Begin(r.kType);
  Put(bytes_, r.object);
  PutStr(bytes_, r.place);
  End();
}

void Batch::Add(const SealRecord& r) {
  Begin(r.kType);
  End();
}

void Batch::Add(const Batch& other) {
  for (size_t frame : other.frames_) frames_.push_back(bytes_.size() + frame);
  bytes_.append(other.bytes_);
  oversize_ = oversize_ || other.oversize_;
}

void Batch::Finish(uint64_t first_seq) {
  for (size_t i = 0; i < frames_.size(); i++) {
    char* frame = bytes_.data() + frames_[i];
    const size_t end = i + 1 < frames_.size() ? frames_[i + 1] : bytes_.size();
    const uint64_t seq = first_seq + i;
    memcpy(frame + 8, &seq, sizeof seq);
    const uint32_t crc = hash::Crc32c(0, frame + 4, end - frames_[i] - 4);
    memcpy(frame, &crc, sizeof crc);
  }
}

void Batch::Clear() {
  bytes_.clear();
  frames_.clear();
  oversize_ = false;
}

}  // namespace journal
