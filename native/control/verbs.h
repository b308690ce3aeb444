// The verbs of the control socket, on a session. Runs on the control server's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "control/dispatch.h"
#include "session/session.h"

namespace control {

// What `hello` and `status` say that the session does not know.
struct EngineFacts {
  uint64_t session = 0;  // the random number of this mount, as in the journal's FileHeader
  pid_t keeper = 0;
  uint32_t connection = 0;  // below /sys/fs/fuse/connections
  std::string mountpoint;
};

// The session must outlive the handler.
Handler MakeHandler(session::Session* session, EngineFacts facts);

}  // namespace control
