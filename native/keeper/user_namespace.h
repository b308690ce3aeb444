// An ordinary user's engine has to write into files that the user's own mode bits forbid (git makes its objects 0444
// and then writes them through the open descriptor; the engine opens again). In a user namespace that maps the user's
// ids it has the power to, over the user's own files and nothing else.
#pragma once

#include "sys/result.h"

namespace keeper {

// Before any thread starts. A trial in a child comes first: a half-entered namespace could not be left again.
sys::Result<void> EnterUserNamespace();

}  // namespace keeper
