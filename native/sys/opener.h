// Opens that the modes forbid their own owner. With messageless opens the engine opens a file when its bytes are asked
// for, which can be after a program made it 0444 (git's objects) and still writes through its own descriptor. A root
// engine may; an ordinary user's asks the opener: a child process in a user namespace that maps only this user and
// group, where it holds the capability to pass its own files' modes. The engine itself stays outside, or it would see
// every other user's files as nobody's. Files of another group than the user's first one stay out of the opener's reach
// (the namespace maps one group).
#pragma once

#include <memory>
#include <mutex>

#include "sys/fd.h"
#include "sys/result.h"

namespace sys {

class Opener {
 public:
  // Forks; call it before any thread is started. Fails where the distribution forbids user namespaces.
  static Result<std::unique_ptr<Opener>> Start();

  // Opens the inode of `path_fd` (O_PATH) with `flags`. Any thread.
  Result<UniqueFd> Open(int path_fd, int flags);

 private:
  explicit Opener(UniqueFd channel) : channel_(std::move(channel)) {}

  std::mutex mutex_;  // one question at a time
  UniqueFd channel_;  // the child ends when this closes
};

}  // namespace sys
