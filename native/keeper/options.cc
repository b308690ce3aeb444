#include "keeper/options.h"

#include <getopt.h>

#include <climits>
#include <cstring>

#include "control/line.h"

namespace keeper {
namespace {

enum Option : int {
  kProjectFd = 256,
  kStoreFd,
  kAt,
  kControl,
  kNextObject,
  kNextSeq,
  kNextPack,
  kEpoch,
  kMeta,
  kMaxPreimage,
  kOnCaptureFailure,
  kThreads,
  kTrace,
  kLaneOwner,
  kFuseFd,
  kLifelineFd,
  kReportFd,
  kKeeperPid,
  kConnection,
};

constexpr option kOptions[] = {
    {"project-fd", required_argument, nullptr, kProjectFd},
    {"store-fd", required_argument, nullptr, kStoreFd},
    {"at", required_argument, nullptr, kAt},
    {"control", required_argument, nullptr, kControl},
    {"next-object", required_argument, nullptr, kNextObject},
    {"next-seq", required_argument, nullptr, kNextSeq},
    {"next-pack", required_argument, nullptr, kNextPack},
    {"epoch", required_argument, nullptr, kEpoch},
    {"meta", required_argument, nullptr, kMeta},
    {"max-preimage", required_argument, nullptr, kMaxPreimage},
    {"on-capture-failure", required_argument, nullptr, kOnCaptureFailure},
    {"threads", required_argument, nullptr, kThreads},
    {"trace", no_argument, nullptr, kTrace},
    {"lane-owner", required_argument, nullptr, kLaneOwner},
    {"fuse-fd", required_argument, nullptr, kFuseFd},
    {"lifeline-fd", required_argument, nullptr, kLifelineFd},
    {"report-fd", required_argument, nullptr, kReportFd},
    {"keeper-pid", required_argument, nullptr, kKeeperPid},
    {"connection", required_argument, nullptr, kConnection},
    {nullptr, 0, nullptr, 0},
};

constexpr unsigned kMaxThreads = 64;

// Numbers of any width, within [min, max].
template <typename Number>
bool TakeNumber(const char* text, Number* number, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  if (!control::ParseUnsigned(text, &value) || value < min || value > max) return false;
  *number = static_cast<Number>(value);
  return true;
}

// LANE:PID:TOKEN; the token may be empty and may hold colons.
bool TakeLaneOwner(std::string_view text, std::vector<session::LaneOwner>* owners) {
  size_t first = text.find(':');
  size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return false;
  uint64_t lane = 0;
  uint64_t pid = 0;
  if (!control::ParseUnsigned(text.substr(0, first), &lane) || lane > UINT32_MAX) return false;
  if (!control::ParseUnsigned(text.substr(first + 1, second - first - 1), &pid) || pid > INT_MAX) return false;
  owners->push_back(
      {static_cast<record::Lane>(lane), static_cast<uint32_t>(pid), std::string(text.substr(second + 1))});
  return true;
}

bool TakeOption(int name, const char* text, Options* options) {
  switch (name) {
    case kProjectFd:
      return TakeNumber(text, &options->project_fd, 0, INT_MAX);
    case kStoreFd:
      return TakeNumber(text, &options->store_fd, 0, INT_MAX);
    case kAt:
      options->mountpoint = text;
      return options->mountpoint.starts_with('/');
    case kControl:
      options->control_path = text;
      return options->control_path.starts_with('/');
    case kNextObject:
      return TakeNumber(text, &options->next_object, 2, UINT64_MAX);
    case kNextSeq:
      return TakeNumber(text, &options->next_seq, 1, UINT64_MAX);
    case kNextPack:
      return TakeNumber(text, &options->next_pack, 0, UINT64_MAX);
    case kEpoch:
      return TakeNumber(text, &options->epoch, 1, journal::kRewindLaneBit - 1);
    case kMeta:
      options->meta = text;
      return true;
    case kMaxPreimage:
      return TakeNumber(text, &options->max_preimage_bytes, 0, UINT64_MAX);
    case kOnCaptureFailure:
      options->skip_on_failure = strcmp(text, "skip") == 0;
      return options->skip_on_failure || strcmp(text, "fail") == 0;
    case kThreads:
      return TakeNumber(text, &options->threads, 1, kMaxThreads);
    case kTrace:
      options->trace = true;
      return true;
    case kLaneOwner:
      return TakeLaneOwner(text, &options->lane_owners);
    case kFuseFd:
      return TakeNumber(text, &options->fuse_fd, 0, INT_MAX);
    case kLifelineFd:
      return TakeNumber(text, &options->lifeline_fd, 0, INT_MAX);
    case kReportFd:
      return TakeNumber(text, &options->report_fd, 0, INT_MAX);
    case kKeeperPid:
      return TakeNumber(text, &options->keeper_pid, 1, INT_MAX);
    case kConnection:
      return TakeNumber(text, &options->connection, 0, UINT32_MAX);
    default:
      return false;
  }
}

const char* MissingOption(const Options& options, Role role) {
  if (options.project_fd < 0) return "--project-fd";
  if (options.store_fd < 0) return "--store-fd";
  if (options.mountpoint.empty()) return "--at";
  if (options.control_path.empty()) return "--control";
  if (role == Role::kKeeper) return nullptr;
  if (options.fuse_fd < 0) return "--fuse-fd";
  if (options.lifeline_fd < 0) return "--lifeline-fd";
  if (options.report_fd < 0) return "--report-fd";
  return nullptr;
}

}  // namespace

bool ParseOptions(int argc, char** argv, Role role, Options* options, std::string* complaint) {
  opterr = 0;
  optind = 1;
  int index = 0;
  for (int name; (name = getopt_long(argc, argv, "", kOptions, &index)) != -1;) {
    bool known = name != '?' && (name < kFuseFd || role == Role::kEngine);
    if (!known) {
      *complaint = std::string("There is no option ") + argv[optind - 1] + " here, or it lacks its value.";
      return false;
    }
    if (!TakeOption(name, optarg == nullptr ? "" : optarg, options)) {
      *complaint = std::string("The value of --") + kOptions[index].name + " can't be used: " + optarg + ".";
      return false;
    }
  }
  if (optind < argc) {
    *complaint = std::string("An argument too many: ") + argv[optind] + ".";
    return false;
  }
  if (const char* missing = MissingOption(*options, role)) {
    *complaint = std::string("The option ") + missing + " is missing.";
    return false;
  }
  return true;
}

std::vector<std::string> EngineArguments(const Options& options) {
  std::vector<std::string> arguments{"engine"};
  auto add = [&](const char* name, const std::string& value) {
    arguments.push_back(std::string("--") + name);
    arguments.push_back(value);
  };
  add("project-fd", std::to_string(options.project_fd));
  add("store-fd", std::to_string(options.store_fd));
  add("at", options.mountpoint);
  add("control", options.control_path);
  add("next-object", std::to_string(options.next_object));
  add("next-seq", std::to_string(options.next_seq));
  add("next-pack", std::to_string(options.next_pack));
  add("epoch", std::to_string(options.epoch));
  add("meta", options.meta);
  add("max-preimage", std::to_string(options.max_preimage_bytes));
  add("on-capture-failure", options.skip_on_failure ? "skip" : "fail");
  add("threads", std::to_string(options.threads));
  if (options.trace) arguments.push_back("--trace");
  for (const session::LaneOwner& owner : options.lane_owners) {
    add("lane-owner", std::to_string(owner.lane) + ":" + std::to_string(owner.pid) + ":" + owner.token);
  }
  add("fuse-fd", std::to_string(options.fuse_fd));
  add("lifeline-fd", std::to_string(options.lifeline_fd));
  add("report-fd", std::to_string(options.report_fd));
  add("keeper-pid", std::to_string(options.keeper_pid));
  add("connection", std::to_string(options.connection));
  return arguments;
}

}  // namespace keeper
