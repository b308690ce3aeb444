// The journal's records as structures, and their encoding. The layout is described in FORMAT.md.
// Strings are views: when encoding they must live until Add returns, when decoding they point into the payload.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/format.h"

namespace journal {

struct FileHeader {
  static constexpr RecordType kType = RecordType::kFileHeader;
  uint64_t session = 0;
  int64_t time_ns = 0;
};

struct SpanRecord {
  static constexpr RecordType kType = RecordType::kSpan;
  uint32_t epoch = 0;
  SpanKind kind = SpanKind::kBetween;
  Lane lane = kUserLane;
  int64_t time_ns = 0;
  std::string_view meta;
};

struct ProcessRecord {
  static constexpr RecordType kType = RecordType::kProcess;
  uint32_t proc = 0;
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  Lane lane = kUserLane;
  std::string_view comm;
  std::string_view command;  // argv, each ended by NUL
};

struct BindRecord {
  static constexpr RecordType kType = RecordType::kBind;
  ObjectId object = kNoObject;
  bool born = false;
  uint32_t mode = 0;
  uint64_t dev = 0;
  uint64_t ino = 0;
  int64_t birth_ns = 0;
  ObjectId parent = kNoObject;
  std::string_view name;
  std::string_view handle;
};

// What every record of a first touch begins with.
struct Touch {
  uint32_t epoch = 0;
  Lane lane = kUserLane;
  uint32_t proc = 0;
  int64_t time_ns = 0;
};

struct EntryRecord {
  static constexpr RecordType kType = RecordType::kEntry;
  Touch touch;
  ObjectId dir = kNoObject;
  std::string_view name;
  ObjectId object = kNoObject;
  uint32_t mode = 0;
  std::string_view parent_path;
};

struct Xattr {
  std::string name;
  std::string value;
};

struct AttrsRecord {
  static constexpr RecordType kType = RecordType::kAttrs;
  Touch touch;
  ObjectId object = kNoObject;
  uint32_t mode = 0, uid = 0, gid = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0, ctime_ns = 0;
  uint64_t rdev = 0;
  uint32_t nlink = 0;
  std::vector<Xattr> xattrs;
  std::string target;
  std::string_view path;
};

struct Extent {
  uint64_t offset = 0, length = 0;
  ExtentKind kind = ExtentKind::kHole;
  uint64_t file = 0, file_offset = 0;
  uint64_t xxh64 = 0;
};

struct DataRecord {
  static constexpr RecordType kType = RecordType::kData;
  Touch touch;
  ObjectId object = kNoObject;
  bool whole = false;
  uint64_t size = 0;
  std::vector<Extent> extents;
};

struct PreservedRecord {
  static constexpr RecordType kType = RecordType::kPreserved;
  ObjectId object = kNoObject;
  std::string_view place;
  PreservedHow how = PreservedHow::kRenamed;
};

struct MovedRecord {
  static constexpr RecordType kType = RecordType::kMoved;
  ObjectId object = kNoObject;
  ObjectId dir = kNoObject;
  std::string_view name;
};

struct SkippedRecord {
  static constexpr RecordType kType = RecordType::kSkipped;
  Touch touch;
  ObjectId object = kNoObject;
  ObjectId dir = kNoObject;
  std::string_view name;
  SkippedWhat what = SkippedWhat::kData;
  int32_t error = 0;
  std::string_view reason;
};

struct UnmountRecord {
  static constexpr RecordType kType = RecordType::kUnmount;
  int64_t time_ns = 0;
};

struct DroppedRecord {
  static constexpr RecordType kType = RecordType::kDropped;
  ObjectId object = kNoObject;
  std::string_view place;
};

struct SealRecord {
  static constexpr RecordType kType = RecordType::kSeal;
};

// Records that are appended together. Frames get their seq and checksum when the writer knows where they go.
class Batch {
 public:
  void Add(const FileHeader& record);
  void Add(const SpanRecord& record);
  void Add(const ProcessRecord& record);
  void Add(const BindRecord& record);
  void Add(const EntryRecord& record);
  void Add(const AttrsRecord& record);
  void Add(const DataRecord& record);
  void Add(const PreservedRecord& record);
  void Add(const MovedRecord& record);
  void Add(const SkippedRecord& record);
  void Add(const UnmountRecord& record);
  void Add(const DroppedRecord& record);
  void Add(const SealRecord& record);

  // Appends the frames of another batch.
  void Add(const Batch& other);
  // Writes seq numbers from `first_seq` on and the checksums into the frames.
  void Finish(uint64_t first_seq);
  void Clear();

  bool empty() const { return frames_.empty(); }
  size_t count() const { return frames_.size(); }
  std::string_view bytes() const { return bytes_; }
  // A payload over the format's limit: such a batch can't be appended.
  bool oversize() const { return oversize_; }

 private:
  void Begin(RecordType type);
  void End();

  std::string bytes_;
  std::vector<size_t> frames_;  // where each frame begins
  bool oversize_ = false;
};

// Each gives false when the payload is not exactly one record of that type.
bool Decode(std::string_view payload, FileHeader* record);
bool Decode(std::string_view payload, SpanRecord* record);
bool Decode(std::string_view payload, ProcessRecord* record);
bool Decode(std::string_view payload, BindRecord* record);
bool Decode(std::string_view payload, EntryRecord* record);
bool Decode(std::string_view payload, AttrsRecord* record);
bool Decode(std::string_view payload, DataRecord* record);
bool Decode(std::string_view payload, PreservedRecord* record);
bool Decode(std::string_view payload, MovedRecord* record);
bool Decode(std::string_view payload, SkippedRecord* record);
bool Decode(std::string_view payload, UnmountRecord* record);
bool Decode(std::string_view payload, DroppedRecord* record);
bool Decode(std::string_view payload, SealRecord* record);

}  // namespace journal
