// The journal: every record comes through, damage is cut off and told, a full disk leaves no half record.
#include <cstring>
#include <thread>

#include "control/check.h"
#include "journal/dump.h"
#include "journal/records.h"
#include "journal/writer.h"
#include "record/test_world.h"

namespace {

using namespace journal;

std::string Hex(std::string_view bytes) {
  std::string out;
  char two[3];
  for (char c : bytes) {
    snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    out += two;
  }
  return out;
}

// One batch with a record of every type, all fields different.
Batch Everything() {
  Batch batch;
  const Touch touch{7, 0x80000007, 9, -5};
  batch.Add(FileHeader{0x1122334455667788, 1790000000000000000});
  batch.Add(SpanRecord{7, SpanKind::kRedo, 3, 11, "{\"a\":1}"});
  batch.Add(ProcessRecord{9, 4711, 12, 3, "ba)s h", std::string_view("bash\0-c\0", 8)});
  batch.Add(BindRecord{42, true, 0100644, 13, 14, 15, 1, "n\xff", std::string_view("\x01\x00\x00\x00h", 5)});
  batch.Add(EntryRecord{touch, 1, "new\n", 42, 0100755, "a/b"});
  batch.Add(AttrsRecord{
      touch, 42, 0120777, 1000, 1001, 1ull << 40, -1, 16, 17, 2, {{"user.a", "x"}, {"user.b", ""}}, "to", "a/n"});
  batch.Add(
      DataRecord{touch, 42, true, 100, {{0, 60, ExtentKind::kPack, 1, 16, 18}, {60, 40, ExtentKind::kHole, 0, 0, 0}}});
  batch.Add(PreservedRecord{42, "preserved/0e/e.2a.1", PreservedHow::kLinked});
  batch.Add(MovedRecord{42, 1, "there"});
  batch.Add(SkippedRecord{touch, 42, 1, "n", SkippedWhat::kPreserve, ENOSPC, "pwrite"});
  batch.Add(UnmountRecord{19});
  batch.Add(DroppedRecord{42, "preserved/0e/e.2a.1"});
  batch.Add(SealRecord{});
  return batch;
}

Contents Parsed(std::string bytes) {
  Contents contents;
  contents.bytes = std::move(bytes);
  return contents;
}

template <typename Record>
Record Only(const Contents& contents) {
  Record record;
  int found = 0;
  for (const Frame& frame : contents.frames) {
    if (frame.type != Record::kType) continue;
    CHECK(Decode(frame.payload, &record));
    found++;
    // A payload that is too short or too long is refused.
    Record other;
    CHECK(!Decode(std::string(frame.payload) + "x", &other));
    for (size_t cut = 0; cut < frame.payload.size(); cut++) CHECK(!Decode(frame.payload.substr(0, cut), &other));
  }
  CHECK(found == 1);
  return record;
}

void EveryRecordComesThrough() {
  Batch batch = Everything();
  batch.Finish(100);
  Contents file = Parsed(std::string(batch.bytes()));
  Parse(&file);
  CHECK(file.frames.size() == 13 && file.sealed && file.dropped_bytes == 0 && file.end == file.bytes.size());
  for (size_t i = 0; i < file.frames.size(); i++) CHECK(file.frames[i].seq == 100 + i);
  CHECK(Only<FileHeader>(file).session == 0x1122334455667788);
  const auto span = Only<SpanRecord>(file);
  CHECK(span.epoch == 7 && span.kind == SpanKind::kRedo && span.lane == 3 && span.time_ns == 11 &&
        span.meta == "{\"a\":1}");
  const auto process = Only<ProcessRecord>(file);
  CHECK(process.proc == 9 && process.pid == 4711 && process.start_ticks == 12 && process.lane == 3);
  CHECK(process.comm == "ba)s h" && process.command == std::string_view("bash\0-c\0", 8));
  const auto bind = Only<BindRecord>(file);
  CHECK(bind.object == 42 && bind.born && bind.mode == 0100644 && bind.dev == 13 && bind.ino == 14);
  CHECK(bind.birth_ns == 15 && bind.parent == 1 && bind.name == "n\xff" && bind.handle.size() == 5);
  const auto entry = Only<EntryRecord>(file);
  CHECK(entry.touch.epoch == 7 && entry.touch.lane == 0x80000007 && entry.touch.proc == 9 && entry.touch.time_ns == -5);
  CHECK(entry.dir == 1 && entry.name == "new\n" && entry.object == 42 && entry.mode == 0100755 &&
        entry.parent_path == "a/b");
  const auto attrs = Only<AttrsRecord>(file);
  CHECK(attrs.object == 42 && attrs.mode == 0120777 && attrs.uid == 1000 && attrs.gid == 1001 &&
        attrs.size == 1ull << 40);
  CHECK(attrs.mtime_ns == -1 && attrs.ctime_ns == 16 && attrs.rdev == 17 && attrs.nlink == 2 &&
        attrs.xattrs.size() == 2);
  CHECK(attrs.xattrs[0].name == "user.a" && attrs.xattrs[0].value == "x" && attrs.xattrs[1].value.empty());
  CHECK(attrs.target == "to" && attrs.path == "a/n");
  const auto data = Only<DataRecord>(file);
  CHECK(data.object == 42 && data.whole && data.size == 100 && data.extents.size() == 2);
  CHECK(data.extents[0].length == 60 && data.extents[0].kind == ExtentKind::kPack && data.extents[0].file == 1);
  CHECK(data.extents[0].file_offset == 16 && data.extents[0].xxh64 == 18 && data.extents[1].offset == 60);
  const auto preserved = Only<PreservedRecord>(file);
  CHECK(preserved.object == 42 && preserved.place == "preserved/0e/e.2a.1" && preserved.how == PreservedHow::kLinked);
  const auto moved = Only<MovedRecord>(file);
  CHECK(moved.object == 42 && moved.dir == 1 && moved.name == "there");
  const auto skipped = Only<SkippedRecord>(file);
  CHECK(skipped.object == 42 && skipped.dir == 1 && skipped.name == "n" && skipped.what == SkippedWhat::kPreserve);
  CHECK(skipped.error == ENOSPC && skipped.reason == "pwrite");
  CHECK(Only<UnmountRecord>(file).time_ns == 19);
  CHECK(Only<DroppedRecord>(file).place == "preserved/0e/e.2a.1");
  for (const Frame& frame : file.frames) CHECK(Describe(frame).find("not valid") == std::string::npos);
}

// The example of FORMAT.md.
void AFrameLooksAsDocumented() {
  Batch batch;
  batch.Add(MovedRecord{2, 1, "a"});
  batch.Finish(5);
  const std::string hex = Hex(batch.bytes());
  const std::string documented =
      "3fae28dd"
      "13000000"
      "0500000000000000"
      "0900"
      "0000"
      "0200000000000000"
      "0100000000000000"
      "0100"
      "61";
  if (hex != documented) fprintf(stderr, "the frame is %s\n", hex.c_str());
  CHECK(hex == documented);
}

void ATornTailCostsOnlyItself() {
  Batch batch = Everything();
  batch.Finish(1);
  const std::string whole(batch.bytes());
  Contents full = Parsed(whole);
  Parse(&full);
  for (size_t cut = 0; cut < whole.size(); cut++) {
    Contents file = Parsed(whole.substr(0, cut) + std::string(100, '\0'));
    Parse(&file);
    size_t complete = 0;
    while (complete < full.frames.size() &&
           full.frames[complete].offset + kFrameHeaderBytes + full.frames[complete].payload.size() <= cut)
      complete++;
    // A cut at zeros can leave a frame that is complete all the same; never fewer than were.
    CHECK(file.frames.size() >= complete);
    CHECK(file.frames.size() <= complete + 1);
    CHECK((file.dropped_bytes > 0) == !file.dropped_why.empty());
  }
  for (size_t at = 0; at < whole.size(); at++) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Contents file = Parsed(damaged);
    Parse(&file);
    size_t before = 0;
    while (before < full.frames.size() &&
           full.frames[before].offset + kFrameHeaderBytes + full.frames[before].payload.size() <= at)
      before++;
    CHECK(file.frames.size() == before);
    CHECK(!file.sealed || before == full.frames.size());
    CHECK(file.dropped_bytes > 0 && !file.dropped_why.empty());
  }
}

// A valid frame of another file is not taken for the next one.
void FramesMustFollowEachOther() {
  Batch one, two;
  one.Add(FileHeader{1, 2});
  one.Add(UnmountRecord{3});
  one.Finish(10);
  two.Add(UnmountRecord{4});
  two.Finish(13);
  Contents file = Parsed(std::string(one.bytes()) + std::string(two.bytes()));
  Parse(&file);
  CHECK(file.frames.size() == 2 && file.dropped_bytes > kFrameHeaderBytes);
  CHECK(file.dropped_why.find("sequence") != std::string::npos);
  Contents headless = Parsed(std::string(two.bytes()));
  Parse(&headless);
  CHECK(headless.frames.empty() && headless.dropped_why.find("header") != std::string::npos);
}

struct OpenJournal {
  explicit OpenJournal(const std::string& folder) : path(folder) {
    mkdir((folder + "/journal").c_str(), 0700);
    dir.Reset(open((folder + "/journal").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    options.journal_fd = dir.get();
  }
  bool Open() {
    auto opened = Writer::Open(options);
    CHECK(opened.ok());
    if (opened.ok()) writer = std::move(opened.value());
    return opened.ok();
  }
  sys::Result<uint64_t> Put(const std::string& text) {
    Batch batch;
    batch.Add(SpanRecord{1, SpanKind::kTurn, 1, 0, text});
    return writer->Append(&batch);
  }

  std::string path;
  sys::UniqueFd dir;
  Writer::Options options;
  std::unique_ptr<Writer> writer;
};

void FilesAreSealedAndFollowEachOther() {
  test::TempFolder folder;
  OpenJournal journal(folder.path());
  journal.options.next_seq = 7;
  journal.options.rotate_bytes = 4096;
  journal.options.step_bytes = 4096;
  journal.options.reserve_bytes = 8192;
  if (!journal.Open()) return;
  for (int i = 0; i < 100; i++) CHECK(journal.Put(test::Noise(200, 1)).ok());
  auto sealed = journal.writer->Seal();
  CHECK(sealed.ok());
  CHECK(journal.writer->Seal().value() == sealed.value());  // nothing to seal
  CHECK(journal.Put("after").ok());
  CHECK(journal.writer->synced_seq() == 6);
  CHECK(journal.writer->Sync().ok() && journal.writer->synced_seq() == journal.writer->last_seq());
  {
    const test::Journal read = test::ReadJournal(folder.path());
    CHECK(read.files.size() > 4 && read.Count(RecordType::kSpan) == 101);
    CHECK(read.frames.front().seq == 7 && read.frames.back().seq == journal.writer->last_seq());
    for (size_t i = 0; i + 1 < read.files.size(); i++) {
      CHECK(read.files[i]->sealed && read.files[i]->bytes.size() == read.files[i]->end);
    }
    CHECK(!read.files.back()->sealed && read.files.back()->bytes.size() > read.files.back()->end);
  }
  CHECK(journal.writer->Close().ok());
  CHECK(!journal.Put("closed").ok());
  CHECK(test::ReadJournal(folder.path()).files.back()->sealed);
  CHECK(!test::Exists(folder / "journal/reserve"));
}

void OneThatWasKilledIsFollowedByTheNext() {
  test::TempFolder folder;
  OpenJournal journal(folder.path());
  if (!journal.Open()) return;
  CHECK(journal.Put("a").ok());
  const uint64_t seq = journal.writer->last_seq();
  journal.writer.reset();
  // The same numbers again: its records are not overwritten.
  CHECK(!Writer::Open(journal.options).ok());
  journal.options.next_seq = seq + 1;
  if (!journal.Open()) return;
  CHECK(journal.Put("b").ok());
  CHECK(test::ReadJournal(folder.path()).Count(RecordType::kSpan) == 2);
}

// A large record goes beyond the size at which files end.
void ARecordLargerThanAFileFits() {
  test::TempFolder folder;
  OpenJournal journal(folder.path());
  journal.options.rotate_bytes = 4096;
  if (!journal.Open()) return;
  CHECK(journal.Put("small").ok());
  CHECK(journal.Put(std::string(100000, 'x')).ok());
  CHECK(journal.Put("small").ok());
  CHECK(journal.Put(std::string(kMaxPayloadBytes, 'x')).error().number == EFBIG);
  CHECK(journal.Put("small").ok());
  CHECK(test::ReadJournal(folder.path()).Count(RecordType::kSpan) == 4);
}

void AFullDiskLeavesNoHalfRecord() {
  test::TempFolder folder;
  if (!folder.MountTmpfs("full", "1m")) return;
  OpenJournal journal(folder / "full");
  if (!journal.Open()) return;
  // Something else takes all the space.
  int fill = open((folder / "full/fill").c_str(), O_WRONLY | O_CREAT, 0600);
  const std::string block(4096, 'f');
  while (write(fill, block.data(), block.size()) > 0) continue;
  // Small records still go: space was allocated ahead.
  size_t written = 0;
  while (journal.Put("a small record that must still be possible").ok()) written++;
  CHECK(written > 500);
  const uint64_t last = journal.writer->last_seq();
  for (int i = 0; i < 10; i++) {
    CHECK(journal.Put(test::Noise(20000, 2)).error().number == ENOSPC);
    CHECK(journal.writer->last_seq() == last);
  }
  // What has happened and can't be told now is told later, first.
  Batch happened;
  happened.Add(MovedRecord{1, 2, std::string(20000, 'w')});
  CHECK(!journal.writer->AppendOrWait(&happened));
  CHECK(test::ReadJournal(folder / "full").frames.back().seq == last);
  CHECK(ftruncate(fill, 0) == 0);
  close(fill);
  auto again = journal.Put("space again");
  if (!again.ok()) fprintf(stderr, "%s: %s\n", again.error().where, strerror(again.error().number));
  CHECK(again.ok());
  const test::Journal read = test::ReadJournal(folder / "full");
  CHECK(read.Count(RecordType::kSpan) == written + 1 && read.All<MovedRecord>().size() == 1);
  CHECK(read.frames[read.frames.size() - 2].type == RecordType::kMoved);
  CHECK(journal.writer->Seal().ok() && journal.Put("on").ok() && journal.writer->Close().ok());
}

void ThreadsAppendAtOnce() {
  test::TempFolder folder;
  OpenJournal journal(folder.path());
  journal.options.rotate_bytes = 20000;
  if (!journal.Open()) return;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; i++) {
        Batch batch;
        batch.Add(MovedRecord{static_cast<ObjectId>(t + 1), static_cast<ObjectId>(i), "x"});
        batch.Add(MovedRecord{static_cast<ObjectId>(t + 1), static_cast<ObjectId>(i), "y"});
        CHECK(journal.writer->Append(&batch).ok());
        if (i % 100 == 0) CHECK(journal.writer->Sync().ok());
        if (i % 150 == 0) CHECK(journal.writer->Seal().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto moved = test::ReadJournal(folder.path());
  CHECK(moved.Count(RecordType::kMoved) == 4000);
  // The two of a batch are together.
  const MovedRecord* previous = nullptr;
  const auto records = moved.All<MovedRecord>();
  for (const MovedRecord& record : records) {
    if (record.name == "y")
      CHECK(previous != nullptr && previous->object == record.object && previous->dir == record.dir);
    previous = &record;
  }
}

void DumpSaysWhatIsWrong() {
  test::TempFolder folder;
  OpenJournal journal(folder.path());
  if (!journal.Open()) return;
  CHECK(journal.Put("text").ok() && journal.writer->Close().ok());
  const std::string path = folder / "journal/0000000000000001.log";
  CHECK(DumpMain(path.c_str()) == 0);
  test::WriteFile(path, "X", 60);
  CHECK(DumpMain(path.c_str()) == 1);
  CHECK(DumpMain((folder / "nothing").c_str()) == 1);
}

}  // namespace

int main() {
  EveryRecordComesThrough();
  AFrameLooksAsDocumented();
  ATornTailCostsOnlyItself();
  FramesMustFollowEachOther();
  FilesAreSealedAndFollowEachOther();
  OneThatWasKilledIsFollowedByTheNext();
  ARecordLargerThanAFileFits();
  AFullDiskLeavesNoHalfRecord();
  ThreadsAppendAtOnce();
  DumpSaysWhatIsWrong();
  return check::Finish("journal/journal_test");
}
