// Whose touch it is: by descent from an owner, by a token in the environment, or the span's.
#include <sys/wait.h>

#include <functional>
#include <set>
#include <thread>

#include "record/test_world.h"

namespace {

using namespace journal;
using test::TempFolder;
using test::World;

// A process that waits until this goes. `grandchild`: its child is the one that counts, and its parent ends at once.
class Process {
 public:
  explicit Process(const char* token = nullptr, bool orphan = false) : orphan_(orphan) {
    int ready[2], stop[2], between[2];
    CHECK(pipe2(ready, O_CLOEXEC) == 0 && pipe2(stop, O_CLOEXEC) == 0 && pipe2(between, O_CLOEXEC) == 0);
    parent_ = fork();
    if (parent_ == 0) {
      if (orphan && fork() != 0) {
        close(between[1]);
        char c;
        _exit(read(between[0], &c, 1) == 0 ? 0 : 1);
      }
      if (token != nullptr) {
        setenv("TURNFS_RUN", token, 1);
      } else {
        unsetenv("TURNFS_RUN");
      }
      dup2(stop[0], 0);
      dup2(ready[1], 1);
      // The program says its own number when its environment is in place.
      execl("/bin/sh", "sh", "-c", "echo $$; read x", nullptr);
      _exit(1);
    }
    close(ready[1]);
    close(stop[0]);
    close(between[0]);
    stop_ = stop[1];
    between_ = between[1];
    char text[32] = {};
    CHECK(read(ready[0], text, sizeof text - 1) > 0);
    close(ready[0]);
    tid_ = static_cast<uint32_t>(atoi(text));
  }
  ~Process() {
    ParentEnds();
    close(stop_);
    waitpid(parent_, nullptr, 0);
  }
  // Lets the parent of an orphan-to-be end.
  void ParentEnds() {
    if (between_ < 0) return;
    close(between_);
    between_ = -1;
    if (orphan_) waitpid(parent_, nullptr, 0);
  }
  record::Toucher by() const { return {tid_}; }
  uint32_t pid() const { return tid_; }

 private:
  const bool orphan_;
  pid_t parent_;
  int stop_, between_;
  uint32_t tid_;
};

// The lane that a touch by `by` gets.
Lane LaneOf(World& world, record::Toucher by) {
  static int number = 0;
  CHECK(world.recorder->TouchEntry(world.At(""), "name" + std::to_string(number++), nullptr, by).ok());
  const auto records = world.Records();
  return records.All<EntryRecord>().back().touch.lane;
}

record::SpanStart Span(Lane lane, uint32_t owner, const std::string& token) {
  record::SpanStart span = World::TurnSpan(lane);
  span.owner_pid = owner;
  span.token = token;
  return span;
}

void WithoutAnOwnerEverythingIsTheSpans() {
  TempFolder folder;
  World world(folder);
  if (!world.Open(Span(3, 0, ""))) return;
  const Process other;
  CHECK(LaneOf(world, world.me) == 3 && LaneOf(world, other.by()) == 3 && LaneOf(world, {0}) == 3);
  CHECK(LaneOf(world, {4194303}) == 3);  // nobody
  world.Advance(0);
  CHECK(LaneOf(world, other.by()) == 0);
}

void AnOwnersDescendantsAreOfItsLane() {
  TempFolder folder;
  World world(folder);
  const Process child, stranger;
  if (!world.Open(World::TurnSpan(0))) return;
  CHECK(LaneOf(world, child.by()) == 0);
  CHECK(world.recorder->Advance(Span(1, child.pid(), "")).ok());
  CHECK(LaneOf(world, child.by()) == 1 && LaneOf(world, stranger.by()) == 0);
  CHECK(LaneOf(world, {0}) == 1);  // written back by the kernel
  if (test::ReadBytes("/proc/2/comm") == "kthreadd\n") CHECK(LaneOf(world, {2}) == 1);
  CHECK(LaneOf(world, {4194303}) == 0);
  // Its turn is over and it goes on.
  world.Advance(0);
  CHECK(LaneOf(world, child.by()) == 1 && LaneOf(world, stranger.by()) == 0);
  // Another turn whose owner is above all of them.
  CHECK(world.recorder->Advance(Span(2, static_cast<uint32_t>(getpid()), "")).ok());
  CHECK(LaneOf(world, child.by()) == 2 && LaneOf(world, stranger.by()) == 2);
  // A mark goes on with the turn's owner.
  record::SpanStart mark = Span(2, 0, "");
  mark.kind = SpanKind::kMark;
  CHECK(world.recorder->Advance(mark).ok());
  CHECK(LaneOf(world, stranger.by()) == 2 && LaneOf(world, {1}) == 0);
  // An owner that has ended owns nobody, but the turn is not everybody's either.
  pid_t ended = fork();
  if (ended == 0) _exit(0);
  waitpid(ended, nullptr, 0);
  CHECK(world.recorder->Advance(Span(5, static_cast<uint32_t>(ended), "")).ok());
  CHECK(LaneOf(world, {1}) == 0);
}

void AnOrphanStaysInItsLane() {
  TempFolder folder;
  World world(folder);
  Process orphan(nullptr, true);
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/stat", orphan.pid());
  const std::string stat = test::ReadBytes(path);
  const auto parent = static_cast<uint32_t>(atoi(stat.c_str() + stat.rfind(')') + 4));
  if (!world.Open(Span(1, parent, ""))) return;
  CHECK(LaneOf(world, orphan.by()) == 1);
  orphan.ParentEnds();
  world.Advance(0);
  usleep(60000);  // so that it is looked at again
  CHECK(LaneOf(world, orphan.by()) == 1);
}

void ATokenMarksAProcessWhereverItIs() {
  TempFolder folder;
  World world(folder);
  const Process with("token-of-1"), without, other("another");
  if (!world.Open(Span(1, 0, "token-of-1"))) return;
  CHECK(LaneOf(world, with.by()) == 1 && LaneOf(world, without.by()) == 0 && LaneOf(world, other.by()) == 0);
  CHECK(world.recorder->Advance(Span(2, 0, "another")).ok());
  CHECK(LaneOf(world, other.by()) == 2 && LaneOf(world, with.by()) == 1 && LaneOf(world, without.by()) == 0);
  // An engine that starts later is told of earlier turns.
  if (!world.Reopen(true)) return;
  world.recorder->AddLaneOwner(1, 0, "token-of-1");
  world.Advance(0);
  CHECK(LaneOf(world, with.by()) == 1 && LaneOf(world, other.by()) == 0);
}

void LanesTakeTurnsOnOneFile() {
  TempFolder folder;
  World world(folder);
  test::WriteFile(world.Path("f"), "0");
  const Process agent, user;
  if (!world.Open(Span(1, agent.pid(), ""))) return;
  auto& recorder = *world.recorder;
  auto& file = world.At("f");
  auto write = [&](const Process& who, const char* text) {
    CHECK(recorder.TouchData(file, 0, 1, who.by()).ok());
    test::WriteFile(world.Path("f"), text);
  };
  write(agent, "1");
  write(agent, "2");
  write(user, "3");
  write(user, "4");
  write(agent, "5");
  const auto data = world.Records().All<DataRecord>();
  CHECK(data.size() == 3 && data[0].touch.lane == 1 && data[1].touch.lane == 0 && data[2].touch.lane == 1);
  CHECK(world.StoredWhole(data[0]) == "0" && world.StoredWhole(data[1]) == "2" && world.StoredWhole(data[2]) == "4");
  CHECK(file.touch().shared);
  // The same for names.
  for (const Process* who : {&agent, &agent, &user, &agent}) {
    CHECK(recorder.TouchEntry(world.At(""), "g", nullptr, who->by()).ok());
  }
  CHECK(world.Records().All<EntryRecord>().size() == 3);
  // In the next span only one touches it.
  world.Advance(1);
  write(agent, "6");
  CHECK(!file.touch().shared);
}

// What the agent made and the user changed is not thrown away when the agent removes it.
void WhatAnotherLaneTouchedIsPreserved() {
  TempFolder folder;
  World world(folder);
  const Process agent, user;
  if (!world.Open(Span(1, agent.pid(), ""))) return;
  auto& recorder = *world.recorder;
  auto make = [&](const std::string& name) -> test::FakeSubject& {
    CHECK(recorder.TouchEntry(world.At(""), name, nullptr, agent.by()).ok());
    test::WriteFile(world.Path(name), "agent's");
    recorder.Born(world.At(name), agent.by());
    return world.At(name);
  };
  auto& edited = make("edited");
  auto& renamed = make("renamed");
  auto& own = make("own");
  CHECK(recorder.TouchData(edited, 0, 1, user.by()).ok());
  test::WriteFile(world.Path("edited"), "user's");
  CHECK(recorder.TouchEntry(world.At(""), "renamed", &renamed, user.by()).ok());
  // The agent again: captured, because the user was there.
  CHECK(recorder.TouchData(edited, 0, 1, agent.by()).ok());
  CHECK(world.StoredWhole(world.Records().All<DataRecord>().back()).starts_with("user's"));
  for (test::FakeSubject* file : {&edited, &renamed, &own}) {
    auto removed = recorder.RemoveFile(world.project_fd(), file->name().c_str(), *file, agent.by());
    CHECK(removed.ok() && removed.value().nameless == (file == &own));
  }
  // The user removes what the agent made: kept too.
  auto& other = make("other");
  auto removed = recorder.RemoveFile(world.project_fd(), "other", other, user.by());
  CHECK(removed.ok() && !removed.value().nameless);
}

void ProcessesAreNamedWithTheirCommands() {
  TempFolder folder;
  World world(folder);
  if (!world.Open(World::TurnSpan(1))) return;
  const Process one;
  LaneOf(world, one.by());
  LaneOf(world, one.by());
  // The threads of a process are one process.
  std::set<uint32_t> procs;
  for (int i = 0; i < 3; i++) {
    int ready[2], stop[2];
    CHECK(pipe2(ready, O_CLOEXEC) == 0 && pipe2(stop, O_CLOEXEC) == 0);
    std::thread thread([&] {
      const pid_t tid = gettid();
      char c;
      CHECK(write(ready[1], &tid, sizeof tid) == sizeof tid && read(stop[0], &c, 1) == 0);
    });
    pid_t tid = 0;
    CHECK(read(ready[0], &tid, sizeof tid) == sizeof tid);
    CHECK(
        world.recorder->TouchEntry(world.At(""), "t" + std::to_string(i), nullptr, {static_cast<uint32_t>(tid)}).ok());
    close(stop[1]);
    thread.join();
    for (const int fd : {stop[0], ready[0], ready[1]}) close(fd);
    procs.insert(world.Records().All<EntryRecord>().back().touch.proc);
  }
  CHECK(procs.size() == 1);
  const auto records = world.Records();
  const auto processes = records.All<ProcessRecord>();
  CHECK(processes.size() == 2 && processes[0].pid == one.pid() && processes[0].comm == "sh");
  CHECK(processes[0].command == std::string_view("sh\0-c\0echo $$; read x\0", 22) && processes[0].start_ticks > 0);
  CHECK(processes[1].pid == static_cast<uint32_t>(getpid()));
}

}  // namespace

int main() {
  WithoutAnOwnerEverythingIsTheSpans();
  AnOwnersDescendantsAreOfItsLane();
  AnOrphanStaysInItsLane();
  ATokenMarksAProcessWhereverItIs();
  LanesTakeTurnsOnOneFile();
  WhatAnotherLaneTouchedIsPreserved();
  ProcessesAreNamedWithTheirCommands();
  return check::Finish("record/lanes_test");
}
