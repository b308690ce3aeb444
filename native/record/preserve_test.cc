// Files that lose a name go into the store, by rename, link or copy, and are found there again.
#include <sys/xattr.h>

#include "record/test_world.h"

namespace {

using namespace journal;
using test::TempFolder;
using test::World;

sys::Result<record::Removed> Remove(World& world, const std::string& name) {
  auto& subject = world.At(name);
  CHECK(world.recorder->TouchEntry(world.At(""), name, &subject, world.me).ok());
  auto removed = world.recorder->RemoveFile(world.project_fd(), name.c_str(), subject, world.me);
  world.ForgetPath(name);
  return removed;
}

void ARemovedFileIsMovedIntoTheStore() {
  TempFolder folder;
  World world(folder);
  test::WriteFile(world.Path("f"), "text");
  CHECK(symlink("nowhere", world.Path("link").c_str()) == 0);
  CHECK(mkfifo(world.Path("fifo").c_str(), 0600) == 0);
  const uint64_t ino = test::InodeOf(world.Path("f"));
  if (!world.Open()) return;
  CHECK(world.recorder->StoreLinks(0, ino) == 0);
  auto removed = Remove(world, "f");
  CHECK(removed.ok() && !removed.value().nameless && !removed.value().pin.valid());
  const std::string place = removed.value().place;
  CHECK(place.starts_with("preserved/") && !test::Exists(world.Path("f")));
  CHECK(test::InodeOf(world.StorePath(place)) == ino && test::ReadBytes(world.StorePath(place)) == "text");
  CHECK(world.recorder->StoreLinks(0, ino) == 1 && world.recorder->StoredPlace(0, ino) == place);
  CHECK(world.recorder->StoreLinks(77, ino) == 0 && world.recorder->StoredPlace(77, ino).empty());
  CHECK(Remove(world, "link").ok() && Remove(world, "fifo").ok());
  CHECK(world.recorder->counters().preserved == 3 && world.recorder->counters().captured_bytes == 0);
  {
    const auto records = world.Records();
    const auto preserved = records.All<PreservedRecord>();
    CHECK(preserved.size() == 3 && preserved[0].place == place && preserved[0].how == PreservedHow::kRenamed);
    CHECK(records.All<DataRecord>().empty());
    // The place's name says what it is.
    char expected[64];
    snprintf(expected, sizeof expected, "preserved/%02x/%llx.%llx.", static_cast<unsigned>(ino & 0xff),
             static_cast<unsigned long long>(ino), static_cast<unsigned long long>(preserved[0].object));
    CHECK(place.starts_with(expected));
  }
  // A write through a descriptor that is still open is a first touch like any other.
  test::WriteFile(world.StorePath(place), "x", 3);
  // Another engine finds it too.
  if (!world.Reopen(true)) return;
  CHECK(world.recorder->StoreLinks(0, ino) == 1 && world.recorder->StoredPlace(0, ino) == place);
  CHECK(world.recorder->StoreLinks(0, ino + 256) == 0);
  // A rewind takes it out.
  CHECK(rename(world.StorePath(place).c_str(), world.Path("f").c_str()) == 0);
  world.recorder->TakenFrom(world.At("f"), place);
  CHECK(world.recorder->StoreLinks(0, ino) == 0);
  world.recorder->StoredAt(world.At("f"), "preserved/00/0.0.0");  // not its own name: hides nothing
  world.recorder->StoredAt(world.At("f"), "staging/2.0");
  CHECK(world.recorder->StoreLinks(0, ino) == 0);
  const auto records = world.Records();
  CHECK(records.All<DroppedRecord>().size() == 1 && records.All<PreservedRecord>().size() == 5);
}

void EveryLinkOfAFileIsKept() {
  TempFolder folder;
  World world(folder);
  test::WriteFile(world.Path("a"), "text");
  CHECK(link(world.Path("a").c_str(), world.Path("b").c_str()) == 0);
  const uint64_t ino = test::InodeOf(world.Path("a"));
  if (!world.Open()) return;
  auto a = Remove(world, "a");
  auto b = Remove(world, "b");
  CHECK(a.ok() && b.ok() && a.value().place != b.value().place);
  CHECK(world.recorder->StoreLinks(0, ino) == 2);
  // Attributes show the links that people see.
  CHECK(world.recorder->TouchAttrs(world.InStore(a.value().place), world.me).ok());
  const auto attrs = world.Records().All<AttrsRecord>();
  CHECK(attrs.back().nlink == 0);
}

void WhatWasBornInTheSpanIsKeptOnlyWhileItIsOpen() {
  TempFolder folder;
  World world(folder);
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  auto make = [&](const std::string& name) -> record::Subject& {
    CHECK(recorder.TouchEntry(world.At(""), name, nullptr, world.me).ok());
    test::WriteFile(world.Path(name), "temporary");
    recorder.Born(world.At(name), world.me);
    return world.At(name);
  };
  auto& file = make("tmp");
  const uint64_t ino = file.identity().ino;
  auto removed = recorder.RemoveFile(world.project_fd(), "tmp", file, world.me);
  CHECK(removed.ok() && removed.value().nameless && removed.value().place.starts_with("nameless/"));
  CHECK(!test::Exists(world.Path("tmp")) && test::InodeOf(world.StorePath(removed.value().place)) == ino);
  CHECK(recorder.StoreLinks(0, ino) == 1);
  recorder.ForgetNameless(removed.value().place, 0);
  CHECK(!test::Exists(world.StorePath(removed.value().place)) && recorder.StoreLinks(0, ino) == 0);
  // Replaced by a rename.
  auto& second = make("second");
  auto saved = recorder.SaveReplaced(world.project_fd(), "second", second, world.me);
  CHECK(saved.ok() && saved.value().nameless && test::Exists(world.Path("second")));
  recorder.UnsaveReplaced(saved.value(), second);
  CHECK(!test::Exists(world.StorePath(saved.value().place)) && recorder.StoreLinks(0, second.identity().ino) == 0);
  CHECK(world.Records().All<PreservedRecord>().empty() && recorder.counters().preserved == 0);
  // In the next span it is worth keeping.
  world.Advance(2);
  CHECK(recorder.TouchEntry(world.At(""), "second", &second, world.me).ok());
  auto kept = recorder.RemoveFile(world.project_fd(), "second", second, world.me);
  CHECK(kept.ok() && !kept.value().nameless && kept.value().place.starts_with("preserved/"));
  // Without any name.
  const int fd = open(world.Path("").c_str(), O_TMPFILE | O_RDWR, 0600);
  CHECK(fd >= 0 && write(fd, "anonymous", 9) == 9);
  char proc[32];
  snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
  CHECK(linkat(AT_FDCWD, proc, AT_FDCWD, world.Path("probe").c_str(), AT_SYMLINK_FOLLOW) == 0);
  auto& anonymous = world.At("probe");
  CHECK(unlink(world.Path("probe").c_str()) == 0);
  auto pinned = recorder.KeepNameless(fd, anonymous);
  // It had a name, so it can't get another one: only the descriptor is left.
  CHECK(pinned.ok() && pinned.value().place.empty() && pinned.value().pin.valid());
  close(fd);
  const int fresh = open(world.Path("").c_str(), O_TMPFILE | O_RDWR, 0600);
  auto nameless = recorder.KeepNameless(fresh, anonymous);
  CHECK(nameless.ok() && nameless.value().nameless && test::Exists(world.StorePath(nameless.value().place)));
  close(fresh);
  // What is left in nameless/ goes when the next engine starts.
  if (!world.Reopen(true)) return;
  CHECK(!test::Exists(world.StorePath(nameless.value().place)));
}

void AReplacedFileGetsALinkFirst() {
  TempFolder folder;
  World world(folder);
  test::WriteFile(world.Path("f"), "old");
  const uint64_t ino = test::InodeOf(world.Path("f"));
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  auto& victim = world.At("f");
  CHECK(recorder.TouchEntry(world.At(""), "f", &victim, world.me).ok());
  auto saved = recorder.SaveReplaced(world.project_fd(), "f", victim, world.me);
  CHECK(saved.ok() && test::InodeOf(world.Path("f")) == ino);
  CHECK(test::InodeOf(world.StorePath(saved.value().place)) == ino && recorder.StoreLinks(0, ino) == 1);
  // The rename did not happen.
  recorder.UnsaveReplaced(saved.value(), victim);
  CHECK(!test::Exists(world.StorePath(saved.value().place)) && recorder.StoreLinks(0, ino) == 0);
  CHECK(recorder.counters().preserved == 0);
  // This time it does.
  saved = recorder.SaveReplaced(world.project_fd(), "f", victim, world.me);
  test::WriteFile(world.Path("new"), "new");
  CHECK(saved.ok() && rename(world.Path("new").c_str(), world.Path("f").c_str()) == 0);
  CHECK(test::ReadBytes(world.StorePath(saved.value().place)) == "old");
  const auto records = world.Records();
  const auto preserved = records.All<PreservedRecord>();
  CHECK(preserved.size() == 2 && preserved[1].how == PreservedHow::kLinked);
  CHECK(records.All<DroppedRecord>().size() == 1 && records.All<DroppedRecord>()[0].place == preserved[0].place);
}

// A project that files can't be renamed out of (another file system than the store's).
void ElsewhereBytesAreCopied() {
  TempFolder folder;
  if (!folder.MountTmpfs("project", "16m")) return;
  World world(folder);
  const std::string bytes = test::Noise(100000, 9);
  test::WriteFile(world.Path("f"), bytes);
  test::WriteFile(world.Path("g"), "replaced");
  CHECK(setxattr(world.Path("f").c_str(), "trusted.k", "v", 1, 0) == 0);
  CHECK(symlink("target", world.Path("link").c_str()) == 0);
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  auto removed = Remove(world, "f");
  CHECK(removed.ok() && removed.value().place.empty() && !removed.value().nameless && !test::Exists(world.Path("f")));
  // A program may have it open still: the pin leads to it.
  struct stat st;
  CHECK(removed.value().pin.valid() && fstat(removed.value().pin.get(), &st) == 0 && st.st_size == 100000);
  CHECK(Remove(world, "link").ok());
  auto saved = recorder.SaveReplaced(world.project_fd(), "g", world.At("g"), world.me);
  CHECK(saved.ok() && saved.value().place.empty() && saved.value().pin.valid() && test::Exists(world.Path("g")));
  recorder.UnsaveReplaced(saved.value(), world.At("g"));
  CHECK(recorder.TouchEntry(world.At(""), "tmp", nullptr, world.me).ok());
  test::WriteFile(world.Path("tmp"), "x");
  recorder.Born(world.At("tmp"), world.me);
  auto born = recorder.RemoveFile(world.project_fd(), "tmp", world.At("tmp"), world.me);
  CHECK(born.ok() && born.value().pin.valid() && !test::Exists(world.Path("tmp")));
  const auto records = world.Records();
  const auto data = records.All<DataRecord>();
  CHECK(data.size() == 2 && data[0].whole && world.StoredWhole(data[0]) == bytes);
  CHECK(world.StoredWhole(data[1]) == "replaced");
  const auto attrs = records.All<AttrsRecord>();
  CHECK(attrs.size() == 4 && attrs[1].xattrs.size() == 1 && attrs[2].target == "target");  // folder, f, link, g
  // Every place that was told is taken back.
  CHECK(records.All<PreservedRecord>().size() == records.All<DroppedRecord>().size());
  CHECK(recorder.counters().preserved == 0);
}

void ACopyThatFailsLeavesTheFile() {
  TempFolder folder;
  if (!folder.MountTmpfs("project", "16m")) return;
  World world(folder);
  test::WriteFile(world.Path("f"), "text");
  if (!world.Open()) return;
  world.At("f").read_error = EIO;
  auto removed = Remove(world, "f");
  CHECK(!removed.ok() && removed.error().number == EIO && test::Exists(world.Path("f")));
  CHECK(world.recorder->counters().failures == 1);
}

void ANameThatIsNotThereIsSaidSo() {
  TempFolder folder;
  World world(folder);
  test::WriteFile(world.Path("f"), "text");
  if (!world.Open()) return;
  auto& file = world.At("f");
  CHECK(world.recorder->TouchEntry(world.At(""), "f", &file, world.me).ok());
  CHECK(unlink(world.Path("f").c_str()) == 0);
  CHECK(world.recorder->RemoveFile(world.project_fd(), "f", file, world.me).error().number == ENOENT);
  CHECK(world.recorder->SaveReplaced(world.project_fd(), "f", file, world.me).error().number == ENOENT);
  // Somebody behind the mount put another file there: it is not taken for the victim.
  test::WriteFile(world.Path("other"), "other");
  CHECK(rename(world.Path("other").c_str(), world.Path("f").c_str()) == 0);
  CHECK(world.recorder->RemoveFile(world.project_fd(), "f", file, world.me).error().number == ESTALE);
  CHECK(world.recorder->SaveReplaced(world.project_fd(), "f", file, world.me).error().number == ESTALE);
  CHECK(test::ReadBytes(world.Path("f")) == "other");
  CHECK(world.recorder->StoreLinks(0, file.identity().ino) == 0);
}

// A shard that somebody removed is made again.
void MissingShardsAreMadeAgain() {
  TempFolder folder;
  World world(folder);
  if (!world.Open()) return;
  CHECK(system(("rmdir " + world.StorePath("preserved/") + "* " + world.StorePath("nameless")).c_str()) == 0);
  CHECK(mkdir(world.StorePath("nameless").c_str(), 0700) == 0);
  test::WriteFile(world.Path("f"), "text");
  CHECK(Remove(world, "f").value().place.starts_with("preserved/"));
}

}  // namespace

int main() {
  ARemovedFileIsMovedIntoTheStore();
  EveryLinkOfAFileIsKept();
  WhatWasBornInTheSpanIsKeptOnlyWhileItIsOpen();
  AReplacedFileGetsALinkFirst();
  ElsewhereBytesAreCopied();
  ACopyThatFailsLeavesTheFile();
  ANameThatIsNotThereIsSaidSo();
  MissingShardsAreMadeAgain();
  return check::Finish("record/preserve_test");
}
