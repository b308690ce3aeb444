// Many threads touch the same things at once while spans advance and the journal is sealed and synced. Run it with the
// sanitizers: scripts/test-native --san thread -t concurrency
#include <atomic>
#include <shared_mutex>
#include <thread>

#include "hash/xxh64.h"
#include "record/test_world.h"

namespace {

using namespace journal;
using test::TempFolder;
using test::World;

constexpr int kFiles = 8;

// Writers follow the gate's rule: barrier shared, touch, then change.
void EveryFirstTouchIsCapturedOnceAndBeforeTheChange() {
  TempFolder folder;
  World world(folder);
  world.options.chunk_threshold_bytes = 100000;
  world.options.chunk_bytes = 16384;
  std::vector<std::string> names;
  for (int i = 0; i < kFiles; i++) {
    names.push_back("f" + std::to_string(i));
    // Half of them small, half in chunks. Every byte says in which epoch it was written.
    test::WriteFile(world.Path(names.back()), std::string(i % 2 == 0 ? 5000 : 200000, '\0'));
  }
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  for (const std::string& name : names) world.At(name);
  std::shared_mutex barrier;
  std::atomic<bool> stop{false};
  std::atomic<int> epoch{1};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      uint64_t state = static_cast<uint64_t>(t) + 1;
      const record::Toucher by{static_cast<uint32_t>(gettid())};
      for (int i = 0; i < 600; i++) {
        state = state * 6364136223846793005 + 1442695040888963407;
        const std::string& name = names[(state >> 33) % kFiles];
        test::FakeSubject& file = world.At(name);
        const uint64_t size =
            static_cast<uint64_t>(file.identity().ino) != 0 && (name[1] - '0') % 2 == 0 ? 5000 : 200000;
        const uint64_t offset = (state >> 20) % size;
        const std::shared_lock lock(barrier);
        CHECK(recorder.TouchEntry(world.At(""), name, &file, by).ok());
        CHECK(recorder.TouchAttrs(file, by).ok());
        CHECK(recorder.TouchData(file, offset, 1, by).ok());
        const sys::UniqueFd fd(open(world.Path(name).c_str(), O_WRONLY | O_CLOEXEC));
        const char mark = static_cast<char>(epoch.load());
        CHECK(pwrite(fd.get(), &mark, 1, static_cast<off_t>(offset)) == 1);
        recorder.Heartbeat();
      }
    });
  }
  std::thread advancer([&] {
    for (int i = 0; i < 20; i++) {
      usleep(20000);
      {
        const std::unique_lock lock(barrier);
        CHECK(recorder.Advance(World::TurnSpan(static_cast<Lane>(i + 2))).ok());
        epoch++;
      }
      CHECK(recorder.Sync().ok());
      if (i % 4 == 0) CHECK(recorder.Seal().ok());
      recorder.position();
    }
  });
  for (std::thread& thread : threads) thread.join();
  advancer.join();

  const auto records = world.Records();
  std::map<std::pair<uint32_t, std::string>, int> entries;
  for (const EntryRecord& entry : records.All<EntryRecord>()) entries[{entry.touch.epoch, std::string(entry.name)}]++;
  for (const auto& [key, count] : entries) CHECK(count == 1);
  std::map<std::pair<uint32_t, ObjectId>, int> attrs;
  for (const AttrsRecord& record : records.All<AttrsRecord>()) attrs[{record.touch.epoch, record.object}]++;
  for (const auto& [key, count] : attrs) CHECK(count == 1);
  std::map<std::pair<uint32_t, ObjectId>, std::vector<bool>> bytes;
  for (const DataRecord& record : records.All<DataRecord>()) {
    std::vector<bool>& seen = bytes[{record.touch.epoch, record.object}];
    seen.resize(200000);
    for (const Extent& extent : record.extents) {
      const std::string stored = world.Stored(extent);
      CHECK(stored.size() == extent.length);
      if (extent.kind == ExtentKind::kPack) CHECK(hash::XxHash64(stored.data(), stored.size()) == extent.xxh64);
      for (uint64_t i = 0; i < extent.length; i++) {
        CHECK(!seen[extent.offset + i]);  // captured once
        seen[extent.offset + i] = true;
        CHECK(static_cast<uint32_t>(stored[i]) < record.touch.epoch);  // and before this span's changes
      }
    }
  }
  std::map<ObjectId, int> binds;
  for (const BindRecord& bind : records.All<BindRecord>()) binds[bind.object]++;
  CHECK(binds.size() == kFiles + 1);
  for (const auto& [object, count] : binds) CHECK(count == 1);
  CHECK(recorder.counters().failures == 0);
}

// Names made and removed by many threads in a directory tree that nobody bound before.
void ManyThreadsMakeAndRemove() {
  TempFolder folder;
  World world(folder);
  mkdir(world.Path("a").c_str(), 0755);
  mkdir(world.Path("a/b").c_str(), 0755);
  for (int t = 0; t < 4; t++) {
    for (int i = 0; i < 50; i++) test::WriteFile(world.Path("a/b/" + std::to_string(t) + "." + std::to_string(i)), "x");
  }
  if (!world.Open()) return;
  std::vector<std::vector<test::FakeSubject*>> files(4);
  auto& dir = world.At("a/b");
  for (size_t t = 0; t < 4; t++) {
    for (int i = 0; i < 50; i++) files[t].push_back(&world.At("a/b/" + std::to_string(t) + "." + std::to_string(i)));
  }
  const sys::UniqueFd dirfd(open(world.Path("a/b").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      const record::Toucher by{static_cast<uint32_t>(gettid())};
      for (test::FakeSubject* file : files[t]) {
        const std::string name = file->name();
        CHECK(world.recorder->TouchEntry(dir, name, file, by).ok());
        auto removed = world.recorder->RemoveFile(dirfd.get(), name.c_str(), *file, by);
        CHECK(removed.ok() && world.recorder->StoreLinks(0, file->identity().ino) == 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto records = world.Records();
  CHECK(records.All<PreservedRecord>().size() == 200 && records.All<EntryRecord>().size() == 200);
  CHECK(records.All<BindRecord>().size() == 203 && world.recorder->counters().preserved == 200);
  // Parents before children, objects before what names them.
  std::map<ObjectId, bool> known;
  for (const Frame& frame : records.frames) {
    BindRecord bind;
    EntryRecord entry;
    if (frame.type == RecordType::kBind && Decode(frame.payload, &bind)) {
      CHECK(bind.parent == 0 || known[bind.parent]);
      known[bind.object] = true;
    }
    if (frame.type == RecordType::kEntry && Decode(frame.payload, &entry))
      CHECK(known[entry.dir] && known[entry.object]);
  }
}

}  // namespace

int main() {
  EveryFirstTouchIsCapturedOnceAndBeforeTheChange();
  ManyThreadsMakeAndRemove();
  return check::Finish("record/concurrency_test");
}
