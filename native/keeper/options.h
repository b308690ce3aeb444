// What the daemon tells the keeper, and the keeper the engine, on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/session.h"

namespace keeper {

struct Options {
  int project_fd = -1;
  int store_fd = -1;
  std::string mountpoint;
  std::string control_path;
  uint64_t next_object = 2;
  uint64_t next_seq = 1;
  uint64_t next_pack = 1;
  uint32_t epoch = 1;
  std::string meta;
  uint64_t max_preimage_bytes = UINT64_MAX;
  bool skip_on_failure = false;
  unsigned threads = 4;
  bool trace = false;
  std::vector<session::LaneOwner> lane_owners;

  // Only from keeper to engine.
  int fuse_fd = -1;
  int lifeline_fd = -1;  // read end of a pipe that the keeper holds open as long as it lives
  int report_fd = -1;    // the engine writes one line there: "ready", or "error …"
  int keeper_pid = 0;
  uint32_t connection = 0;  // below /sys/fs/fuse/connections
};

enum class Role { kKeeper, kEngine };

// Takes argv of the role (argv[0] is the role's name). False: *complaint is one sentence about what is wrong.
bool ParseOptions(int argc, char** argv, Role role, Options* options, std::string* complaint);

// The engine's argv (without the terminating nullptr), "engine" at the beginning, that ParseOptions gives these back
// from.
std::vector<std::string> EngineArguments(const Options& options);

}  // namespace keeper
