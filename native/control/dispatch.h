// From a line to its answer, the same for the control socket and for `fsop`: parse, call, append.
#pragma once

#include <functional>
#include <string>

#include "control/line.h"

namespace control {

// Fills the answer's fields; an error it returns becomes the answer.
using Handler = std::function<sys::Result<void>(const Request&, Answer*)>;

// Takes every finished line out of `reader`, appends an answer for each to *out. Stops early when *out has grown to
// `out_limit` bytes, so that one client can't make us keep any amount; true: there may be more lines.
bool AnswerLines(LineReader* reader, const Handler& handler, std::string* out, size_t out_limit);

}  // namespace control
