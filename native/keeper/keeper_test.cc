// What the keeper reads: its command line and the mount table.
#include <cstring>

#include "control/check.h"
#include "keeper/failure.h"
#include "keeper/mount_table.h"
#include "keeper/options.h"

namespace {

using keeper::Options;
using keeper::Role;

bool Parse(std::vector<std::string> words, Role role, Options* options, std::string* complaint) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return keeper::ParseOptions(static_cast<int>(words.size()), argv.data(), role, options, complaint);
}

const std::vector<std::string> kNeeded = {"keeper", "--project-fd", "3",         "--store-fd", "4",
                                          "--at",   "/a b",         "--control", "/c"};

bool ParseWith(std::vector<std::string> more, Options* options) {
  std::vector<std::string> words = kNeeded;
  words.insert(words.end(), more.begin(), more.end());
  std::string complaint;
  bool parsed = Parse(words, Role::kKeeper, options, &complaint);
  CHECK(parsed == complaint.empty());
  return parsed;
}

void TheEngineGetsWhatTheKeeperGot() {
  Options options;
  CHECK(ParseWith({"--next-object",
                   "77",
                   "--next-seq",
                   "9",
                   "--next-pack",
                   "0",
                   "--epoch",
                   "5",
                   "--meta",
                   "{\"a\": \"b\"}",
                   "--max-preimage",
                   "1000",
                   "--on-capture-failure",
                   "skip",
                   "--threads",
                   "2",
                   "--trace",
                   "--lane-owner",
                   "3:4711:tok:en",
                   "--lane-owner",
                   "2:0:"},
                  &options));
  options.fuse_fd = 9;
  options.lifeline_fd = 10;
  options.report_fd = 11;
  options.keeper_pid = 12;
  options.connection = 13;
  Options engine;
  std::string complaint;
  CHECK(Parse(keeper::EngineArguments(options), Role::kEngine, &engine, &complaint));
  CHECK(engine.mountpoint == "/a b" && engine.meta == "{\"a\": \"b\"}" && engine.next_object == 77 &&
        engine.next_seq == 9);
  CHECK(engine.epoch == 5 && engine.max_preimage_bytes == 1000 && engine.skip_on_failure && engine.trace);
  CHECK(engine.threads == 2 && engine.connection == 13 && engine.keeper_pid == 12 && engine.report_fd == 11);
  CHECK(engine.lane_owners.size() == 2 && engine.lane_owners[0].token == "tok:en" && engine.lane_owners[0].pid == 4711);
  CHECK(engine.lane_owners[1].lane == 2 && engine.lane_owners[1].token.empty());
}

void WrongOptionsAreRefused() {
  Options options;
  CHECK(ParseWith({}, &options));
  for (std::vector<std::string> wrong : std::vector<std::vector<std::string>>{{"--bogus"},
                                                                              {"--epoch"},
                                                                              {"--epoch", "0"},
                                                                              {"--epoch", "x"},
                                                                              {"--next-object", "1"},
                                                                              {"--threads", "0"},
                                                                              {"--on-capture-failure", "maybe"},
                                                                              {"--lane-owner", "3"},
                                                                              {"--lane-owner", "3:x:t"},
                                                                              {"--at", "relative"},
                                                                              {"--fuse-fd", "3"},
                                                                              {"stray"},
                                                                              {"--project-fd", "-1"}}) {
    CHECK(!ParseWith(wrong, &options));
  }
  std::string complaint;
  Options none;
  CHECK(!Parse({"keeper"}, Role::kKeeper, &none, &complaint) && complaint == "The option --project-fd is missing.");
  Options engine;
  CHECK(!Parse(kNeeded, Role::kEngine, &engine, &complaint) && complaint == "The option --fuse-fd is missing.");
}

void TheMountTableIsRead() {
  const char* table =
      "22 28 0:21 / /proc rw shared:5 - proc proc rw\n"
      "40 28 254:0 / /home/a\\040b rw,relatime shared:1 - ext4 /dev/vda rw\n"
      "broken line\n"
      "41 40 0:38 / /home/a\\040b rw,nosuid shared:2 master:3 - fuse.turnfs /home/a\\040b rw,user_id=0\n"
      "42 28 0:39 / /home/back\\134slash rw - fuse.turnfs x rw\n";
  auto entry = keeper::FindMountIn(table, "/home/a b");
  CHECK(entry.has_value() && entry->id == 41 && entry->device_minor == 38 && entry->type == keeper::kMountType);
  CHECK(keeper::FindMountIn(table, "/home/back\\slash").has_value());
  CHECK(!keeper::FindMountIn(table, "/home").has_value() && !keeper::FindMountIn("", "/").has_value());
  CHECK(keeper::FindMount("/proc").has_value());
}

void FailuresAreOneLine() {
  std::string line = keeper::FailureLine(keeper::MakeFailure(ENOENT, "/dev/fuse", "It can't\nbe"));
  CHECK(line ==
        "error errno=2 name=ENOENT where=/dev/fuse message=It%20can%27t%0Abe:%20No%20such%20file%20or%20directory\n");
}

}  // namespace

int main() {
  TheEngineGetsWhatTheKeeperGot();
  WrongOptionsAreRefused();
  TheMountTableIsRead();
  FailuresAreOneLine();
  return check::Finish("keeper/keeper_test");
}
