// The role `umount PATH [--lazy]`, a child of the daemon.
#pragma once

namespace keeper {

// Only unmounts turnfs. Complains in one sentence on standard error, with the errno's name; returns the exit status.
int UmountMain(int argc, char** argv);

}  // namespace keeper
