// The role `engine`, started by the keeper with the mounted /dev/fuse descriptor: sets the process up, starts the
// session and the control socket, serves.
#pragma once

namespace keeper {

int EngineMain(int argc, char** argv);

}  // namespace keeper
