// One mount's life inside the engine: the FUSE connection, its worker threads, the inode table, the gate and the
// recorder. main.cc starts it; the control socket's thread calls the functions below `Run`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "record/recorder.h"
#include "sys/fd.h"
#include "sys/opener.h"
#include "sys/result.h"

namespace session {

// An earlier turn whose processes may still be writing: their touches stay that turn's.
struct LaneOwner {
  record::Lane lane;
  uint32_t pid;       // 0: none
  std::string token;  // empty: none
};

struct Options {
  int fuse_fd = -1;     // /dev/fuse, already mounted; never cloned (an engine that takes over must find requests on it)
  int project_fd = -1;  // O_PATH, opened before the mount went on top
  int store_fd = -1;
  sys::Opener* opener = nullptr;  // of an ordinary user's engine; outlives the session
  unsigned threads = 4;
  bool trace = false;
  std::string mountpoint;
  record::Options recorder;
  record::SpanStart first_span;
  std::vector<LaneOwner> lane_owners;
};

struct Status {
  uint64_t requests = 0, inodes = 0, fds = 0;
  std::string io = "cached";
};

class Session {
 public:
  static sys::Result<std::unique_ptr<Session>> Start(Options options);
  virtual ~Session() = default;
  // Serves until the filesystem is unmounted (returns 0) or the connection is broken (an errno).
  virtual int Run() = 0;

  virtual void FlushBegin() = 0;
  virtual bool FlushEnd() = 0;  // true: flush again, a SETATTR(size) overlapped it
  virtual sys::Result<record::Position> Advance(const record::SpanStart& next) = 0;
  virtual sys::Result<record::Position> Seal() = 0;
  virtual sys::Result<void> Sync() = 0;
  virtual sys::Result<std::string> OpenDoor() = 0;  // the door's name in the root of the mount
  virtual void CloseDoor() = 0;
  virtual Status status() = 0;
  virtual const record::Counters& counters() = 0;
  virtual record::Position position() = 0;
  virtual uint64_t next_object() = 0;
  virtual uint64_t next_pack() = 0;
  virtual void SetShortTimeouts(bool on) = 0;
  virtual void SetTrace(bool on) = 0;
};

}  // namespace session
