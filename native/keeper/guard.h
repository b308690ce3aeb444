// The guard: a tiny process that outlives the keeper. When the keeper dies without a word the mount must go, also when
// the engine died with it.
#pragma once

#include <sys/types.h>

#include "keeper/mount.h"

namespace keeper {

// The lifeline is a pipe whose write end only the keeper holds. A byte in it: the keeper ends in order. Its end without
// one: the keeper was killed. Nobody takes the byte out, so that several may look.
enum class LifelineEnd { kOrderly, kKilled };

// Waits until `lifeline` ends, or `wake` (-1: none) becomes readable: then kOrderly.
LifelineEnd WaitForLifeline(int lifeline, int wake);

// Forks the guard. For the single-threaded keeper only. Returns its pid, or -1.
pid_t StartGuard(const Mounted& mounted, int lifeline);

}  // namespace keeper
