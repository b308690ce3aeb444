// Becoming a process of its own: the caller's terminal, working directory and descriptors are let go.
#pragma once

#include <string>

#include "keeper/failure.h"
#include "sys/fd.h"

namespace keeper {

// How the process that was started learns what became of the daemon it forked: it says so with its exit status, after
// the daemon has put its line on standard output.
class Starter {
 public:
  // Forks; returns in the daemon only, which has its own session then. The parent waits for Announce and exits.
  static Failure Fork(Starter* starter);

  // Prints `line` on what was standard output, closes that and lets the parent exit with `status`.
  void Announce(const std::string& line, int status);

 private:
  sys::UniqueFd output_;
  sys::UniqueFd status_;
};

// Standard input and output to /dev/null, standard error to `engine.log` in the store, cwd /, and every descriptor
// closed that is neither one of these, nor `project_fd`, `store_fd` or the starter's. Those two are marked
// close-on-exec.
Failure LetGo(int project_fd, int store_fd);

}  // namespace keeper
