// A store on a disk without space: an operation fails and nothing is lost, or it is skipped and said, as was chosen.
#include "record/test_world.h"

namespace {

using namespace journal;
using test::TempFolder;
using test::World;

// Takes all space of the store's disk; gives it back at the end.
class Filler {
 public:
  explicit Filler(const std::string& path) : path_(path) {
    const std::string block(4096, 'f');
    const sys::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    while (write(fd.get(), block.data(), block.size()) > 0) continue;
    CHECK(errno == ENOSPC);
  }
  ~Filler() { unlink(path_.c_str()); }

 private:
  const std::string path_;
};

void TheOperationFails() {
  TempFolder folder;
  if (!folder.MountTmpfs("store", "8m")) return;
  World world(folder);
  const std::string bytes = test::Noise(200000, 1);
  test::WriteFile(world.Path("f"), bytes);
  test::WriteFile(world.Path("first"), "first");
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  CHECK(recorder.TouchData(world.At("first"), 0, 1, world.me).ok());
  {
    const Filler filler(folder / "store/fill");
    for (int i = 0; i < 3; i++) CHECK(recorder.TouchData(world.At("f"), 0, 1, world.me).error().number == ENOSPC);
    CHECK(recorder.counters().failures == 3);
    // Small records still go: names can be made, renamed and removed on a full disk.
    for (int i = 0; i < 1000; i++) {
      CHECK(recorder.TouchEntry(world.At(""), "name" + std::to_string(i), nullptr, world.me).ok());
    }
  }
  CHECK(recorder.TouchData(world.At("f"), 0, 1, world.me).ok());
  const auto records = world.Records();
  const auto data = records.All<DataRecord>();
  CHECK(data.size() == 2 && world.StoredWhole(data[1]) == bytes && records.All<SkippedRecord>().empty());
}

void OrIsSkipped() {
  TempFolder folder;
  if (!folder.MountTmpfs("store", "8m")) return;
  World world(folder);
  world.options.skip_on_failure = true;
  test::WriteFile(world.Path("f"), test::Noise(200000, 1));
  test::WriteFile(world.Path("gone"), test::Noise(200000, 2));
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  {
    const Filler filler(folder / "store/fill");
    for (int i = 0; i < 3; i++) CHECK(recorder.TouchData(world.At("f"), 0, 1, world.me).ok());
    // Another file system than the store's: it would have to be copied.
    auto removed = recorder.RemoveFile(world.project_fd(), "gone", world.At("gone"), world.me);
    CHECK(removed.ok() && removed.value().place.empty() && !test::Exists(world.Path("gone")));
  }
  const auto records = world.Records();
  const auto skipped = records.All<SkippedRecord>();
  CHECK(skipped.size() == 2 && skipped[0].error == ENOSPC && skipped[0].what == SkippedWhat::kData);
  CHECK(skipped[0].object == world.At("f").touch().object && !skipped[0].reason.empty());
  CHECK(records.All<DataRecord>().empty() && records.All<AttrsRecord>().size() == 2);
  CHECK(recorder.counters().skipped == 2 && recorder.counters().failures == 0);
}

// When not even the journal can take a record, nothing passes in silence, whatever was chosen.
void AFullJournalStopsEverything() {
  TempFolder folder;
  if (!folder.MountTmpfs("store", "4m")) return;
  World world(folder);
  world.options.skip_on_failure = true;
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  size_t made = 0;
  const std::string long_name(200, 'n');
  {
    const Filler filler(folder / "store/fill");
    while (made < 1000000 &&
           recorder.TouchEntry(world.At(""), long_name + std::to_string(made), nullptr, world.me).ok()) {
      made++;
    }
    CHECK(made > 1000 && made < 1000000);
    record::SpanStart span = World::TurnSpan(2);
    span.meta = long_name;
    CHECK(!recorder.Advance(span).ok() && recorder.position().epoch == 1);
  }
  CHECK(recorder.TouchEntry(world.At(""), long_name + std::to_string(made), nullptr, world.me).ok());
  CHECK(recorder.Advance(World::TurnSpan(2)).ok());
  const auto records = world.Records();
  CHECK(records.All<EntryRecord>().size() == made + 1 && records.All<SpanRecord>().size() == 2);
}

}  // namespace

int main() {
  TheOperationFails();
  OrIsSkipped();
  AFullJournalStopsEverything();
  return check::Finish("record/full_disk_test");
}
