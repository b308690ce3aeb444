#include "journal/dump.h"

#include <fcntl.h>

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "journal/records.h"

namespace journal {
namespace {

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string Quote(std::string_view bytes) {
  std::string out = "\"";
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte > 0x7e) {
      out += Format("\\x%02x", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string Quote(const std::string& bytes) { return Quote(std::string_view(bytes)); }

std::string Text(const Touch& t) {
  return Format("epoch=%u lane=%u proc=%u time=%" PRId64, t.epoch, t.lane, t.proc, t.time_ns);
}

std::string Text(const FileHeader& r) { return Format("session=%016" PRIx64 " time=%" PRId64, r.session, r.time_ns); }

std::string Text(const SpanRecord& r) {
  return Format("epoch=%u kind=%u lane=%u time=%" PRId64 " meta=", r.epoch, static_cast<unsigned>(r.kind), r.lane,
                r.time_ns) +
         Quote(r.meta);
}

std::string Text(const ProcessRecord& r) {
  return Format("proc=%u pid=%u start=%" PRIu64 " lane=%u comm=", r.proc, r.pid, r.start_ticks, r.lane) +
         Quote(r.comm) + " command=" + Quote(r.command);
}

std::string Text(const BindRecord& r) {
  return Format("object=%" PRIu64 " born=%d mode=%06o dev=%" PRIu64 " ino=%" PRIu64 " birth=%" PRId64 " parent=%" PRIu64
                " name=",
                r.object, r.born, r.mode, r.dev, r.ino, r.birth_ns, r.parent) +
         Quote(r.name) + " handle=" + Quote(r.handle);
}

std::string Text(const EntryRecord& r) {
  return Text(r.touch) + Format(" dir=%" PRIu64 " name=", r.dir) + Quote(r.name) +
         Format(" object=%" PRIu64 " mode=%06o in=", r.object, r.mode) + Quote(r.parent_path);
}

std::string Text(const AttrsRecord& r) {
  std::string out =
      Text(r.touch) + Format(" object=%" PRIu64 " mode=%06o uid=%u gid=%u size=%" PRIu64 " mtime=%" PRId64
                             " ctime=%" PRId64 " rdev=%" PRIu64 " nlink=%u",
                             r.object, r.mode, r.uid, r.gid, r.size, r.mtime_ns, r.ctime_ns, r.rdev, r.nlink);
  for (const Xattr& xattr : r.xattrs) out += " xattr " + Quote(xattr.name) + "=" + Quote(xattr.value);
  if (!r.target.empty()) out += " target=" + Quote(r.target);
  return out + " path=" + Quote(r.path);
}

std::string Text(const Extent& e) {
  const char* kind = e.kind == ExtentKind::kHole ? "hole" : e.kind == ExtentKind::kPack ? "pack" : "blob";
  std::string out = Format(" [%" PRIu64 "+%" PRIu64 " %s", e.offset, e.length, kind);
  if (e.kind != ExtentKind::kHole) {
    out += Format(" %" PRIx64 ":%" PRIu64 " xxh64=%016" PRIx64, e.file, e.file_offset, e.xxh64);
  }
  return out + "]";
}

std::string Text(const DataRecord& r) {
  std::string out = Text(r.touch) + Format(" object=%" PRIu64 " whole=%d size=%" PRIu64, r.object, r.whole, r.size);
  for (const Extent& extent : r.extents) out += Text(extent);
  return out;
}

std::string Text(const PreservedRecord& r) {
  return Format("object=%" PRIu64 " how=%s place=", r.object, r.how == PreservedHow::kRenamed ? "renamed" : "linked") +
         Quote(r.place);
}

std::string Text(const MovedRecord& r) {
  return Format("object=%" PRIu64 " dir=%" PRIu64 " name=", r.object, r.dir) + Quote(r.name);
}

std::string Text(const SkippedRecord& r) {
  return Text(r.touch) + Format(" object=%" PRIu64 " dir=%" PRIu64 " name=", r.object, r.dir) + Quote(r.name) +
         Format(" what=%u errno=%d reason=", static_cast<unsigned>(r.what), r.error) + Quote(r.reason);
}

std::string Text(const UnmountRecord& r) { return Format("time=%" PRId64, r.time_ns); }

std::string Text(const DroppedRecord& r) { return Format("object=%" PRIu64 " place=", r.object) + Quote(r.place); }

std::string Text(const SealRecord&) { return ""; }

template <typename Record>
std::string TextOf(const char* name, const Frame& frame) {
  Record record;
  if (!Decode(frame.payload, &record)) return std::string(name) + " (payload is not valid)";
  const std::string text = Text(record);
  return text.empty() ? name : std::string(name) + " " + text;
}

int DumpPack(std::string_view bytes) {
  uint32_t version;
  uint64_t session;
  memcpy(&version, bytes.data() + 4, 4);
  memcpy(&session, bytes.data() + 8, 8);
  printf("pack version=%u session=%016" PRIx64 " bytes=%zu\n", version, session, bytes.size() - kPackHeaderBytes);
  return version == kPackVersion ? 0 : 1;
}

}  // namespace

std::string Describe(const Frame& frame) {
  switch (frame.type) {
    case RecordType::kFileHeader:
      return TextOf<FileHeader>("FileHeader", frame);
    case RecordType::kSpan:
      return TextOf<SpanRecord>("Span", frame);
    case RecordType::kProcess:
      return TextOf<ProcessRecord>("Process", frame);
    case RecordType::kBind:
      return TextOf<BindRecord>("Bind", frame);
    case RecordType::kEntry:
      return TextOf<EntryRecord>("Entry", frame);
    case RecordType::kAttrs:
      return TextOf<AttrsRecord>("Attrs", frame);
    case RecordType::kData:
      return TextOf<DataRecord>("Data", frame);
    case RecordType::kPreserved:
      return TextOf<PreservedRecord>("Preserved", frame);
    case RecordType::kMoved:
      return TextOf<MovedRecord>("Moved", frame);
    case RecordType::kSkipped:
      return TextOf<SkippedRecord>("Skipped", frame);
    case RecordType::kUnmount:
      return TextOf<UnmountRecord>("Unmount", frame);
    case RecordType::kDropped:
      return TextOf<DroppedRecord>("Dropped", frame);
    case RecordType::kSeal:
      return TextOf<SealRecord>("Seal", frame);
  }
  return Format("unknown record type %u, %zu bytes", static_cast<unsigned>(frame.type), frame.payload.size());
}

int DumpMain(const char* path) {
  auto contents = ReadFile(AT_FDCWD, path);
  if (!contents.ok()) {
    fprintf(stderr, "turnfs-engine: %s can't be read: %s\n", path, strerror(contents.error().number));
    return 1;
  }
  Contents& file = contents.value();
  if (file.bytes.size() >= kPackHeaderBytes && memcmp(file.bytes.data(), kPackMagic, 4) == 0)
    return DumpPack(file.bytes);
  Parse(&file);
  for (const Frame& frame : file.frames) {
    printf("%8" PRIu64 " @%-8" PRIu64 " %s\n", frame.seq, frame.offset, Describe(frame).c_str());
  }
  if (file.dropped_bytes > 0) {
    printf("dropped %" PRIu64 " bytes at %" PRIu64 ": %s\n", file.dropped_bytes, file.end, file.dropped_why.c_str());
    return 1;
  }
  if (file.frames.empty()) {
    printf("no records\n");
    return 1;
  }
  printf(file.sealed ? "sealed\n" : "not sealed\n");
  return 0;
}

}  // namespace journal
