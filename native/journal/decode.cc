// Payloads to records (see records.h). Trusts nothing: lengths are checked against what is there.
#include <cstring>

#include "journal/records.h"

namespace journal {
namespace {

class Input {
 public:
  explicit Input(std::string_view payload) : left_(payload) {}

  template <typename T>
  void Get(T& value) {
    if (!Have(sizeof value)) return;
    memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
  }
  void Get(bool& value) {
    uint8_t byte = 0;
    Get(byte);
    value = byte != 0;
  }
  void GetStr(std::string_view& text) {
    uint16_t size = 0;
    Get(size);
    Take(size, text);
  }
  void GetBlob(std::string_view& bytes) {
    uint32_t size = 0;
    Get(size);
    Take(size, bytes);
  }
  void Get(Touch& touch) {
    Get(touch.epoch);
    Get(touch.lane);
    Get(touch.proc);
    Get(touch.time_ns);
  }
  bool Have(size_t size) {
    if (left_.size() < size) good_ = false;
    return good_;
  }
  bool good() const { return good_; }
  // Everything was there and nothing is left.
  bool Done() const { return good_ && left_.empty(); }

 private:
  void Take(size_t size, std::string_view& out) {
    if (!Have(size)) return;
    out = left_.substr(0, size);
    left_.remove_prefix(size);
  }

  std::string_view left_;
  bool good_ = true;
};

constexpr size_t kExtentBytes = 41;

}  // namespace

bool Decode(std::string_view payload, FileHeader* r) {
  Input in(payload);
  uint32_t magic = 0;
  uint16_t version = 0;
  in.Get(magic);
  in.Get(version);
  in.Get(r->session);
  in.Get(r->time_ns);
  return in.Done() && magic == kFileMagic && version == kVersion;
}

bool Decode(std::string_view payload, SpanRecord* r) {
  Input in(payload);
  in.Get(r->epoch);
  in.Get(r->kind);
  in.Get(r->lane);
  in.Get(r->time_ns);
  in.GetBlob(r->meta);
  return in.Done();
}

bool Decode(std::string_view payload, ProcessRecord* r) {
  Input in(payload);
  in.Get(r->proc);
  in.Get(r->pid);
  in.Get(r->start_ticks);
  in.Get(r->lane);
  in.GetStr(r->comm);
  in.GetBlob(r->command);
  return in.Done();
}

bool Decode(std::string_view payload, BindRecord* r) {
  Input in(payload);
  in.Get(r->object);
  in.Get(r->born);
  in.Get(r->mode);
  in.Get(r->dev);
  in.Get(r->ino);
  in.Get(r->birth_ns);
  in.Get(r->parent);
  in.GetStr(r->name);
  in.GetStr(r->handle);
  return in.Done();
}

bool Decode(std::string_view payload, EntryRecord* r) {
  Input in(payload);
  in.Get(r->touch);
  in.Get(r->dir);
  in.GetStr(r->name);
  in.Get(r->object);
  in.Get(r->mode);
  in.GetStr(r->parent_path);
  return in.Done();
}

bool Decode(std::string_view payload, AttrsRecord* r) {
  Input in(payload);
  uint16_t count = 0;
  in.Get(r->touch);
  in.Get(r->object);
  in.Get(r->mode);
  in.Get(r->uid);
  in.Get(r->gid);
  in.Get(r->size);
  in.Get(r->mtime_ns);
  in.Get(r->ctime_ns);
  in.Get(r->rdev);
  in.Get(r->nlink);
  in.Get(count);
  for (uint16_t i = 0; i < count && in.good(); i++) {
    std::string_view name, value;
    in.GetStr(name);
    in.GetBlob(value);
    r->xattrs.push_back({std::string(name), std::string(value)});
  }
  std::string_view target;
  in.GetBlob(target);
  r->target = target;
  in.GetStr(r->path);
  return in.Done();
}

bool Decode(std::string_view payload, DataRecord* r) {
  Input in(payload);
  uint32_t count = 0;
  in.Get(r->touch);
  in.Get(r->object);
  in.Get(r->whole);
  in.Get(r->size);
  in.Get(count);
  if (!in.Have(size_t{count} * kExtentBytes)) return false;
  r->extents.resize(count);
  for (Extent& extent : r->extents) {
    in.Get(extent.offset);
    in.Get(extent.length);
    in.Get(extent.kind);
    in.Get(extent.file);
    in.Get(extent.file_offset);
    in.Get(extent.xxh64);
  }
  return in.Done();
}

bool Decode(std::string_view payload, PreservedRecord* r) {
  Input in(payload);
  in.Get(r->object);
  in.GetStr(r->place);
  in.Get(r->how);
  return in.Done();
}

bool Decode(std::string_view payload, MovedRecord* r) {
  Input in(payload);
  in.Get(r->object);
  in.Get(r->dir);
  in.GetStr(r->name);
  return in.Done();
}

bool Decode(std::string_view payload, SkippedRecord* r) {
  Input in(payload);
  in.Get(r->touch);
  in.Get(r->object);
  in.Get(r->dir);
  in.GetStr(r->name);
  in.Get(r->what);
  in.Get(r->error);
  in.GetStr(r->reason);
  return in.Done();
}

bool Decode(std::string_view payload, UnmountRecord* r) {
  Input in(payload);
  in.Get(r->time_ns);
  return in.Done();
}

bool Decode(std::string_view payload, DroppedRecord* r) {
  Input in(payload);
  in.Get(r->object);
  in.GetStr(r->place);
  return in.Done();
}

bool Decode(std::string_view payload, SealRecord*) { return payload.empty(); }

}  // namespace journal
