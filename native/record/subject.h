// What the recorder knows and asks of one inode. The inode table implements Subject; unit tests implement it over a
// temporary folder. Nothing here knows FUSE.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "journal/format.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace record {

using journal::Lane;
using journal::ObjectId;

// Epoch and lane in one number: "touched by this lane in this span" is one comparison. Epochs start at 1, so 0 is
// never.
using Stamp = uint64_t;
constexpr Stamp MakeStamp(uint32_t epoch, Lane lane) { return (uint64_t{epoch} << 32) | lane; }

// The touch state of one object; lives inside the inode and is guarded by the object lock (Subject::Lock).
// A touch by another lane, or in a later epoch, finds a different stamp and is a first touch again.
struct TouchState {
  ObjectId object = journal::kNoObject;  // given at first use, by Recorder::Bind
  Stamp attrs = 0;                       // attributes captured
  Stamp data = 0;                        // bytes captured, all of them (chunks of larger files: see Recorder)
  Stamp born = 0;                        // created in this span by this lane: nothing of it needs capturing
  bool shared = false;                   // touched by more than one lane in this span: never dropped without preserving
  bool ever_born = false;                // created in this mount session (the Bind record says born)
};

struct Identity {
  uint64_t dev = 0;  // 0: the filesystem of the project folder
  uint64_t ino = 0;
  int64_t birth_ns = 0;
  mode_t mode = 0;
  std::string handle;  // i32 handle type + bytes, empty when the filesystem or our privileges have none
};

// What made a request: the thread id from the FUSE header; 0 when the kernel gave none (write-back of mapped pages).
struct Toucher {
  uint32_t tid = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual TouchState& touch() = 0;
  // Serialises captures of this object: the second writer waits until the first one's pre-image is stored.
  // Lock order: barrier (shared) → objects (one at a time) → inode table → journal.
  virtual void Lock() = 0;
  virtual void Unlock() = 0;
  virtual Identity identity() = 0;
  // O_PATH descriptor, and one for reading bytes (O_NOATIME where permitted).
  virtual sys::Result<sys::UniqueFd> OpenPath() = 0;
  virtual sys::Result<sys::UniqueFd> OpenRead() = 0;
  // The last known directory and name; nullptr for the project folder or when it is not known.
  // The pointer is valid while this Subject is.
  virtual Subject* parent() = 0;
  virtual std::string name() = 0;
};

}  // namespace record
