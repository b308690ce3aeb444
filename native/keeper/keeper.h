// The role `keeper`: mounts, starts the engine, and sees to it that the folder is plain again when either of them is
// gone. It holds the descriptors of /dev/fuse, project and store as long as the mount lives and never serves a request.
//
// | state     | on                                   | becomes   | by                    |
// | --------- | ------------------------------------ | --------- | --------------------- |
// | starting  | the engine reports ready             | probing   | Keeper::ReadReport    |
// | probing   | a statfs of the mount was answered   | serving   | Keeper::Reap          |
// | serving   | SIGTERM, SIGINT                      | leaving   | Keeper::BeginUnmount  |
// | any       | the engine ends, or takes too long   | (exit)    | Keeper::Finish        |
#pragma once

namespace keeper {

// The role's main. Prints `ready …` or `error …` once on standard output; the caller gets an exit status then, and a
// daemon goes on.
int KeeperMain(int argc, char** argv);

}  // namespace keeper
