// First touches: what is captured, when, and for whom.
#include <sys/xattr.h>

#include <algorithm>

#include "hash/xxh64.h"
#include "record/test_world.h"

namespace {

using namespace journal;
using test::TempFolder;
using test::World;

void TheFirstTouchOfAnEntryIsRecordedOnce() {
  TempFolder folder;
  World world(folder);
  mkdir(world.Path("d").c_str(), 0755);
  test::WriteFile(world.Path("d/f"), "text");
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  for (int i = 0; i < 3; i++) {
    CHECK(recorder.TouchEntry(world.At("d"), "new", nullptr, world.me).ok());
    CHECK(recorder.TouchEntry(world.At("d"), "f", &world.At("d/f"), world.me).ok());
  }
  {
    const auto records = world.Records();
    const auto entries = records.All<EntryRecord>();
    CHECK(entries.size() == 2);
    CHECK(entries[0].name == "new" && entries[0].object == 0 && entries[0].mode == 0 && entries[0].parent_path == "d");
    CHECK(entries[1].name == "f" && entries[1].object == world.At("d/f").touch().object && entries[1].mode == 0100644);
    CHECK(entries[0].dir == entries[1].dir && entries[0].dir == world.At("d").touch().object);
    CHECK(entries[0].touch.epoch == 1 && entries[0].touch.lane == 1 && entries[0].touch.proc != 0);
    // The directory's own attributes, once; the project folder was not touched.
    const auto attrs = records.All<AttrsRecord>();
    CHECK(attrs.size() == 1 && attrs[0].object == entries[0].dir && attrs[0].path == "d" && S_ISDIR(attrs[0].mode));
    // Parents are bound first, the root is 1.
    const auto binds = records.All<BindRecord>();
    CHECK(binds.size() == 3 && binds[0].object == kRootObject && binds[0].parent == 0 && binds[0].name.empty());
    CHECK(binds[1].parent == kRootObject && binds[1].name == "d" && binds[1].ino == test::InodeOf(world.Path("d")));
    CHECK(binds[2].parent == binds[1].object && binds[2].name == "f" && binds[2].handle == "handle");
    CHECK(binds[0].dev == 0 && binds[2].dev == 0 && !binds[2].born);
    CHECK(records.All<ProcessRecord>().size() == 1);
    CHECK(records.All<ProcessRecord>()[0].command.find("touch_test") != std::string_view::npos);
  }
  // In the next span it is a first touch again, and nothing is bound twice.
  world.Advance(2);
  CHECK(recorder.TouchEntry(world.At("d"), "new", nullptr, world.me).ok());
  const auto records = world.Records();
  CHECK(records.All<EntryRecord>().size() == 3 && records.All<EntryRecord>()[2].touch.epoch == 2);
  CHECK(records.All<BindRecord>().size() == 3 && records.All<AttrsRecord>().size() == 2);
  CHECK(records.All<SpanRecord>().size() == 2);
}

void SmallFilesAreCapturedWhole() {
  TempFolder folder;
  World world(folder);
  const std::string bytes = test::Noise(5000, 1);
  test::WriteFile(world.Path("f"), bytes);
  test::WriteFile(world.Path("empty"), "");
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  CHECK(recorder.TouchData(world.At("f"), 100, 10, world.me).ok());
  test::WriteFile(world.Path("f"), "changed", 100);
  CHECK(recorder.TouchData(world.At("f"), 0, UINT64_MAX, world.me).ok());
  CHECK(recorder.TouchAttrs(world.At("f"), world.me).ok());
  CHECK(recorder.TouchData(world.At("empty"), 0, 5, world.me).ok());
  const auto records = world.Records();
  const auto data = records.All<DataRecord>();
  CHECK(data.size() == 2 && data[0].whole && data[0].size == 5000 && data[0].extents.size() == 1);
  CHECK(world.StoredWhole(data[0]) == bytes);
  CHECK(data[0].extents[0].xxh64 == hash::XxHash64(bytes.data(), bytes.size()));
  CHECK(data[1].whole && data[1].size == 0 && data[1].extents.empty());
  CHECK(records.All<AttrsRecord>().size() == 2 && records.All<AttrsRecord>()[0].size == 5000);
  CHECK(recorder.counters().captured_bytes == 5000 && recorder.counters().failures == 0);
}

void HolesStayHoles() {
  TempFolder folder("/dev/shm");  // tmpfs has holes of one page
  World world(folder);
  const std::string path = world.Path("sparse");
  const std::string piece = test::Noise(8192, 3);
  test::WriteFile(path, piece, 65536);
  CHECK(truncate(path.c_str(), 500000) == 0);
  test::WriteFile(world.Path("hole"), "");
  CHECK(truncate(world.Path("hole").c_str(), 10ll << 30) == 0);
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  CHECK(recorder.TouchData(world.At("sparse"), 0, 1, world.me).ok());
  CHECK(recorder.TouchData(world.At("hole"), 0, UINT64_MAX, world.me).ok());
  const auto data = world.Records().All<DataRecord>();
  CHECK(data.size() == 2 && data[0].extents.size() == 3 && data[0].whole && data[0].size == 500000);
  CHECK(data[0].extents[0].kind == ExtentKind::kHole && data[0].extents[0].length == 65536);
  CHECK(data[0].extents[1].kind == ExtentKind::kPack && world.Stored(data[0].extents[1]) == piece);
  CHECK(data[0].extents[2].kind == ExtentKind::kHole && data[0].extents[2].offset == 65536 + 8192);
  CHECK(data[0].extents[2].length == 500000 - 65536 - 8192);
  // 10 GiB of nothing cost nothing.
  CHECK(data[1].whole && data[1].size == 10ull << 30 && data[1].extents.size() == 1);
  CHECK(data[1].extents[0].kind == ExtentKind::kHole && data[1].extents[0].length == 10ull << 30);
  CHECK(recorder.counters().captured_bytes == 8192);
}

void AttributesAreComplete() {
  TempFolder folder;
  World world(folder);
  const std::string path = world.Path("f");
  test::WriteFile(path, "x");
  CHECK(setxattr(path.c_str(), "user.small", "value", 5, 0) == 0);
  // u::rw-,u:1234:r--,g::r--,m::r--,o::---
  const unsigned char acl[] = {2, 0,    0,   0,   1,   0,   6,    0, 255, 255, 255, 255, 2,   0,    4,
                               0, 0xd2, 4,   0,   0,   4,   0,    4, 0,   255, 255, 255, 255, 0x10, 0,
                               4, 0,    255, 255, 255, 255, 0x20, 0, 0,   0,   255, 255, 255, 255};
  CHECK(setxattr(path.c_str(), "system.posix_acl_access", acl, sizeof acl, 0) == 0);
  const std::string large(3000, 'L');
  CHECK(setxattr(path.c_str(), "user.large", large.data(), large.size(), 0) == 0);
  for (int i = 0; i < 40; i++) {
    const std::string name = "user.a-long-name-of-an-attribute-" + std::to_string(i);
    if (setxattr(path.c_str(), name.c_str(), "", 0, 0) != 0) break;  // ext4 has room for some only
  }
  CHECK(setxattr(path.c_str(), "trusted.t", "t", 1, 0) == 0);
  const timespec times[2] = {{1, 2}, {-3, 123456789}};
  CHECK(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  CHECK(symlink("somewhere/else", world.Path("link").c_str()) == 0);
  CHECK(lsetxattr(world.Path("link").c_str(), "trusted.l", "l", 1, 0) == 0);
  CHECK(mknod(world.Path("null").c_str(), S_IFCHR | 0600, 0x103) == 0);
  CHECK(mkfifo(world.Path("fifo").c_str(), 0611) == 0);
  CHECK(link(path.c_str(), world.Path("second").c_str()) == 0);
  CHECK(chown(path.c_str(), 1000, 1001) == 0);
  if (!world.Open()) return;
  for (const char* name : {"f", "link", "null", "fifo"}) {
    CHECK(world.recorder->TouchAttrs(world.At(name), world.me).ok());
  }
  const auto attrs = world.Records().All<AttrsRecord>();
  CHECK(attrs.size() == 4);
  auto value = [](const AttrsRecord& record, const std::string& name) {
    for (const Xattr& xattr : record.xattrs) {
      if (xattr.name == name) return xattr.value;
    }
    return std::string("(none)");
  };
  CHECK(value(attrs[0], "user.small") == "value" && value(attrs[0], "user.large") == large);
  CHECK(value(attrs[0], "trusted.t") == "t");
  CHECK(value(attrs[0], "system.posix_acl_access") == std::string(reinterpret_cast<const char*>(acl), sizeof acl));
  CHECK(attrs[0].uid == 1000 && attrs[0].gid == 1001 && attrs[0].nlink == 2);
  CHECK(attrs[0].mtime_ns == -3000000000 + 123456789 && attrs[0].ctime_ns > 0);
  CHECK(S_ISLNK(attrs[1].mode) && attrs[1].target == "somewhere/else" && value(attrs[1], "trusted.l") == "l");
  CHECK(S_ISCHR(attrs[2].mode) && attrs[2].rdev == 0x103);
  CHECK(attrs[3].mode == (S_IFIFO | 0611) && attrs[3].rdev == 0 && attrs[3].target.empty());
}

void WhatIsBornInASpanNeedsNothing() {
  TempFolder folder;
  World world(folder);
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  CHECK(recorder.TouchEntry(world.At(""), "new", nullptr, world.me).ok());
  test::WriteFile(world.Path("new"), "text");
  recorder.Born(world.At("new"), world.me);
  CHECK(world.At("new").touch().object != 0);  // bound at once
  const uint64_t before = recorder.position().seq;
  CHECK(recorder.TouchData(world.At("new"), 0, 100, world.me).ok());
  CHECK(recorder.TouchAttrs(world.At("new"), world.me).ok());
  CHECK(recorder.position().seq == before);
  recorder.Moved(world.At("new"), world.At(""), "other");
  // In the next span it is an object like others, known as one that was born here.
  world.Advance(2);
  CHECK(recorder.TouchData(world.At("new"), 0, 100, world.me).ok());
  const auto records = world.Records();
  const auto binds = records.All<BindRecord>();
  CHECK(binds.size() == 2 && binds[1].born && binds[1].name == "new");
  CHECK(records.All<DataRecord>().size() == 1 && world.StoredWhole(records.All<DataRecord>()[0]) == "text");
  CHECK(records.All<MovedRecord>().size() == 1 && records.All<MovedRecord>()[0].name == "other");
}

void OfLargeFilesOnlyTouchedChunksAreCaptured() {
  TempFolder folder;
  World world(folder);
  world.options.chunk_threshold_bytes = 10000;
  world.options.chunk_bytes = 4096;
  const std::string bytes = test::Noise(100000, 5);
  test::WriteFile(world.Path("f"), bytes);
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  auto& file = world.At("f");
  auto touch = [&](uint64_t offset, uint64_t length) {
    const uint64_t before = recorder.position().seq;
    CHECK(recorder.TouchData(file, offset, length, world.me).ok());
    return recorder.position().seq - before;
  };
  touch(5000, 10);                   // chunk 1
  CHECK(touch(4096, 4096) == 0);     // the same
  CHECK(touch(5000, 4096) == 1);     // 1 and 2: only 2 is new
  CHECK(touch(99999, 100000) == 1);  // the last one, and bytes that were not there
  CHECK(touch(200000, 100) == 0);    // behind what was there
  CHECK(touch(0, 0) == 0);
  CHECK(touch(20480, 8192) == 1);   // 5, 6
  CHECK(touch(12288, 81920) == 1);  // 3 … 22: two runs
  CHECK(touch(12288, 81920) == 0);
  CHECK(touch(0, UINT64_MAX) == 1);  // the rest
  CHECK(touch(0, UINT64_MAX) == 0);
  const auto data = world.Records().All<DataRecord>();
  std::string back(100000, '?');
  uint64_t total = 0;
  for (const DataRecord& record : data) {
    CHECK(!record.whole && record.size == 100000);
    for (const Extent& extent : record.extents) {
      CHECK(back.compare(extent.offset, extent.length, std::string(extent.length, '?')) == 0 || extent.length > 0);
      back.replace(extent.offset, extent.length, world.Stored(extent));
      total += extent.length;
    }
  }
  CHECK(back == bytes && total == 100000);
  CHECK(data[0].extents.size() == 1 && data[0].extents[0].offset == 4096 && data[0].extents[0].length == 4096);
  CHECK(data[1].extents[0].offset == 8192 && data[2].extents[0].offset == 98304 && data[2].extents[0].length == 1696);
  CHECK(data[4].extents.size() == 2);
  // All at once is whole; so is an append, which has nothing to capture but the size.
  world.Advance(2);
  CHECK(recorder.TouchData(file, 100000, 500, world.me).ok());
  world.Advance(3);
  CHECK(recorder.TouchData(file, 0, UINT64_MAX, world.me).ok());
  const auto all = world.Records().All<DataRecord>();
  CHECK(!all[all.size() - 2].whole && all[all.size() - 2].extents.empty() && all[all.size() - 2].size == 100000);
  CHECK(all.back().whole && world.StoredWhole(all.back()) == bytes);
}

// An append or a growing truncate begins at an end that lies in the middle of a chunk: it does not capture that chunk.
void WhatIsWrittenAfterAnAppendIsStillCaptured() {
  TempFolder folder;
  World world(folder);
  world.options.chunk_threshold_bytes = 10000;
  world.options.chunk_bytes = 4096;
  const std::string bytes = test::Noise(50000, 8);
  test::WriteFile(world.Path("f"), bytes);
  if (!world.Open()) return;
  for (const auto& [offset, length] : {std::pair<uint64_t, uint64_t>{50000, 100}, {60000, UINT64_MAX}, {49152, 848}}) {
    CHECK(world.recorder->TouchData(world.At("f"), offset, length, world.me).ok());
  }
  const auto data = world.Records().All<DataRecord>();
  CHECK(data.size() == 2 && data[0].extents.empty() && data[0].size == 50000);
  CHECK(data.back().extents.size() == 1 && data.back().extents[0].offset == 49152 &&
        world.Stored(data.back().extents[0]) == bytes.substr(49152));
}

// The extents of a file that changes behind the mount while it is read say what was read.
void AFileThatShrinksIsCapturedAsFarAsItGoes() {
  TempFolder folder;
  World world(folder);
  world.options.chunk_threshold_bytes = 10000;
  world.options.chunk_bytes = 4096;
  test::WriteFile(world.Path("f"), test::Noise(50000, 6));
  if (!world.Open()) return;
  CHECK(world.recorder->TouchData(world.At("f"), 0, 1, world.me).ok());
  CHECK(truncate(world.Path("f").c_str(), 20000) == 0);
  CHECK(world.recorder->TouchData(world.At("f"), 0, UINT64_MAX, world.me).ok());
  const auto data = world.Records().All<DataRecord>();
  uint64_t end = 0;
  for (const DataRecord& record : data) {
    CHECK(record.size == 50000 && !record.whole);
    for (const Extent& extent : record.extents) end = std::max(end, extent.offset + extent.length);
  }
  CHECK(end == 20000);
}

void ObjectsOverTheLimitAreSkippedAndSaid() {
  TempFolder folder;
  World world(folder);
  world.options.max_preimage_bytes = 1000;
  test::WriteFile(world.Path("large"), test::Noise(1001, 7));
  test::WriteFile(world.Path("small"), test::Noise(1000, 7));
  if (!world.Open()) return;
  for (int i = 0; i < 2; i++) {
    CHECK(world.recorder->TouchData(world.At("large"), 0, 1, world.me).ok());
    CHECK(world.recorder->TouchData(world.At("small"), 0, 1, world.me).ok());
  }
  const auto records = world.Records();
  const auto skipped = records.All<SkippedRecord>();
  CHECK(skipped.size() == 1 && skipped[0].what == SkippedWhat::kData && skipped[0].error == EFBIG);
  CHECK(skipped[0].object == world.At("large").touch().object &&
        skipped[0].reason.find("max-preimage") != std::string_view::npos);
  CHECK(records.All<DataRecord>().size() == 1 && records.All<AttrsRecord>().size() == 2);
  CHECK(world.recorder->counters().skipped == 1);
}

void WhatCouldNotBeCapturedIsTriedAgain() {
  TempFolder folder;
  World world(folder);
  test::WriteFile(world.Path("f"), "text");
  if (!world.Open()) return;
  auto& file = world.At("f");
  file.read_error = EIO;
  for (int i = 0; i < 2; i++) CHECK(world.recorder->TouchData(file, 0, 1, world.me).error().number == EIO);
  CHECK(world.recorder->counters().failures == 2);
  CHECK(world.Records().All<AttrsRecord>().empty());
  file.read_error = 0;
  file.path_error = EACCES;
  CHECK(world.recorder->TouchAttrs(file, world.me).error().number == EACCES);
  file.path_error = 0;
  CHECK(world.recorder->TouchData(file, 0, 1, world.me).ok());
  CHECK(world.Records().All<DataRecord>().size() == 1 && world.Records().All<AttrsRecord>().size() == 1);
}

void OrSkippedWhereTheUserChoseThat() {
  TempFolder folder;
  World world(folder);
  world.options.skip_on_failure = true;
  test::WriteFile(world.Path("f"), "text");
  test::WriteFile(world.Path("g"), "text");
  if (!world.Open()) return;
  world.At("f").read_error = EIO;
  world.At("g").read_error = world.At("g").path_error = EACCES;
  for (int i = 0; i < 2; i++) {
    CHECK(world.recorder->TouchData(world.At("f"), 0, 1, world.me).ok());
    CHECK(world.recorder->TouchData(world.At("g"), 0, 1, world.me).ok());
  }
  const auto records = world.Records();
  const auto skipped = records.All<SkippedRecord>();
  CHECK(skipped.size() == 3 && skipped[0].error == EIO && skipped[0].what == SkippedWhat::kData);
  CHECK(skipped[1].what == SkippedWhat::kData && skipped[2].what == SkippedWhat::kAttrs && skipped[2].error == EACCES);
  CHECK(records.All<AttrsRecord>().size() == 1 && world.recorder->counters().skipped == 3);
}

// Things in the store folder are not part of the history; staged folders and preserved files hang from nothing.
void TheStoresOwnFoldersAreNoObjects() {
  TempFolder folder;
  World world(folder);
  if (!world.Open()) return;
  mkdir(world.StorePath("staging").c_str(), 0700);
  mkdir(world.StorePath("staging/7.0").c_str(), 0755);
  mkdir(world.StorePath("staging/7.0/sub").c_str(), 0755);
  test::WriteFile(world.StorePath("staging/7.0/sub/f"), "x");
  test::WriteFile(world.StorePath("preserved/01/1.2.3"), "x");
  CHECK(world.recorder->TouchData(world.InStore("staging/7.0/sub/f"), 0, 1, world.me).ok());
  CHECK(world.recorder->TouchAttrs(world.InStore("preserved/01/1.2.3"), world.me).ok());
  const auto records = world.Records();
  const auto binds = records.All<BindRecord>();
  CHECK(binds.size() == 4);
  CHECK(binds[0].name == "7.0" && binds[0].parent == 0 && binds[1].name == "sub" && binds[1].parent == binds[0].object);
  CHECK(binds[2].name == "f" && binds[2].parent == binds[1].object);
  CHECK(binds[3].name == "1.2.3" && binds[3].parent == 0);
}

void TheHeartbeatTellsWhenTheEngineWasAlive() {
  TempFolder folder;
  World world(folder);
  if (!world.Open()) return;
  auto beat = [&] {
    const std::string bytes = test::ReadBytes(world.StorePath("heartbeat"));
    uint64_t value = 0;
    memcpy(&value, bytes.data(), sizeof value);
    return value;
  };
  const uint64_t first = beat();
  CHECK(first > 1600000000000000000);
  usleep(1000);
  CHECK(world.recorder->TouchEntry(world.At(""), "x", nullptr, world.me).ok());
  const uint64_t second = beat();
  CHECK(second >= first + 1000000);
  usleep(1000);
  world.recorder->Heartbeat();
  CHECK(beat() >= second + 1000000);
}

void AStoreIsOpenedAgainAfterAKill() {
  TempFolder folder;
  World world(folder);
  test::WriteFile(world.Path("f"), "text");
  if (!world.Open()) return;
  CHECK(world.recorder->TouchData(world.At("f"), 0, 1, world.me).ok());
  if (!world.Reopen(true)) return;
  CHECK(world.recorder->TouchData(world.At("f"), 0, 1, world.me).ok());
  if (!world.Reopen(false)) return;
  const auto records = world.Records();
  CHECK(records.All<DataRecord>().size() == 2 && records.All<UnmountRecord>().size() == 1);
  const auto binds = records.All<BindRecord>();
  CHECK(binds.size() == 4 && binds[1].ino == binds[3].ino && binds[1].object != binds[3].object);
  CHECK(records.files.size() == 3 && !records.files[0]->sealed && records.files[1]->sealed);
}

}  // namespace

int main() {
  TheFirstTouchOfAnEntryIsRecordedOnce();
  SmallFilesAreCapturedWhole();
  HolesStayHoles();
  AttributesAreComplete();
  WhatIsBornInASpanNeedsNothing();
  OfLargeFilesOnlyTouchedChunksAreCaptured();
  WhatIsWrittenAfterAnAppendIsStillCaptured();
  AFileThatShrinksIsCapturedAsFarAsItGoes();
  ObjectsOverTheLimitAreSkippedAndSaid();
  WhatCouldNotBeCapturedIsTriedAgain();
  OrSkippedWhereTheUserChoseThat();
  TheStoresOwnFoldersAreNoObjects();
  TheHeartbeatTellsWhenTheEngineWasAlive();
  AStoreIsOpenedAgainAfterAKill();
  return check::Finish("record/touch_test");
}
