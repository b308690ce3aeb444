// The role `fsop`: a child of the daemon that makes the system calls Node has none for. Requests on standard input,
// answers in order on standard output, ends with its input. One thread, no state but the opened roots.
#pragma once

#include "control/dispatch.h"
#include "fsop/roots.h"

namespace fsop {

// The handler for every verb; `roots` must outlive it.
control::Handler MakeHandler(Roots* roots);

// Serves `in` until it ends. Returns the exit status.
int Serve(int in, int out);

// The role: Serve on standard input and output.
int Main();

}  // namespace fsop
