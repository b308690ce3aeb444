// What a touch costs, in the first and in the last tenth of many: prints the figures, and fails only when a touch does.
#include <algorithm>

#include "record/clock.h"
#include "record/test_world.h"

namespace {

using test::TempFolder;
using test::World;

constexpr int kFiles = 4000;

class Times {
 public:
  template <typename Call>
  void Measure(Call call) {
    const int64_t begin = record::ReadClockNs(CLOCK_MONOTONIC);
    call();
    ns_.push_back(record::ReadClockNs(CLOCK_MONOTONIC) - begin);
  }
  double Quantile(size_t from, size_t to, size_t percent) const {
    std::vector<int64_t> part(ns_.begin() + static_cast<ptrdiff_t>(from), ns_.begin() + static_cast<ptrdiff_t>(to));
    std::sort(part.begin(), part.end());
    return static_cast<double>(part[part.size() * percent / 100]) / 1000;
  }
  double Median() const { return Quantile(0, ns_.size(), 50); }
  // The fastest fifth is what is paid without the machine's other work.
  void Report(const char* what) const {
    const size_t tenth = ns_.size() / 10;
    const double first = Quantile(0, tenth, 20), last = Quantile(ns_.size() - tenth, ns_.size(), 20);
    printf("%-34s median %6.2f µs; undisturbed, first tenth %6.2f, last tenth %6.2f\n", what, Median(), first, last);
  }

 private:
  std::vector<int64_t> ns_;
};

void Measure(const char* under) {
  printf("store and project below %s\n", under);
  TempFolder folder(under);
  World world(folder);
  const std::string bytes = test::Noise(4096, 1);
  std::vector<test::FakeSubject*> files;
  for (int i = 0; i < kFiles; i++) test::WriteFile(world.Path(std::to_string(i)), bytes);
  test::WriteFile(world.Path("large"), test::Noise(64 << 20, 2));
  Times open;
  open.Measure([&] { world.Open(); });
  if (world.recorder == nullptr) return;
  printf("%-34s %.2f ms\n", "open a new store", open.Median() / 1000);
  auto& recorder = *world.recorder;
  world.At("");
  Times capture, again, create, chunk, remove;
  for (int i = 0; i < kFiles; i++) {
    auto& file = world.At(std::to_string(i));
    files.push_back(&file);
    capture.Measure([&] { CHECK(recorder.TouchData(file, 0, 4096, world.me).ok()); });
  }
  for (test::FakeSubject* file : files) {
    again.Measure([&] { CHECK(recorder.TouchData(*file, 0, 4096, world.me).ok()); });
  }
  for (int i = 0; i < kFiles; i++) {
    const std::string name = "new-" + std::to_string(i);
    create.Measure([&] { CHECK(recorder.TouchEntry(world.At(""), name, nullptr, world.me).ok()); });
  }
  for (uint64_t i = 0; i < 1000; i++) {
    chunk.Measure([&] { CHECK(recorder.TouchData(world.At("large"), i * 65536, 4096, world.me).ok()); });
  }
  for (int i = 0; i < kFiles; i++) {
    const std::string name = std::to_string(i);
    remove.Measure([&] {
      CHECK(recorder.TouchEntry(world.At(""), name, files[static_cast<size_t>(i)], world.me).ok());
      CHECK(recorder.RemoveFile(world.project_fd(), name.c_str(), *files[static_cast<size_t>(i)], world.me).ok());
    });
  }
  capture.Report("first write to a 4 KiB file");
  again.Report("the next write");
  create.Report("a new name");
  chunk.Report("first write to a 64 KiB chunk");
  remove.Report("unlink");
  Times advance;
  for (uint32_t lane = 2; lane < 22; lane++) advance.Measure([&] { world.Advance(lane); });
  printf("%-34s median %6.2f µs\n", "advance", advance.Median());
}

}  // namespace

int main() {
  Measure("/dev/shm");
  Measure("/tmp");
  return check::Finish("record/cost_test");
}
