#include "control/dispatch.h"

namespace control {

bool AnswerLines(LineReader* reader, const Handler& handler, std::string* out, size_t out_limit) {
  std::string_view line;
  Request request;
  while (out->size() < out_limit) {
    LineReader::Next next = reader->Take(&line);
    if (next == LineReader::Next::kNothing) return false;
    sys::Result<void> result = ParseRequest(line, &request);
    Answer answer(request.id);
    if (next == LineReader::Next::kOverlong) {
      answer.Fail(sys::Error{EMSGSIZE, "line"});
    } else {
      if (result.ok()) result = handler(request, &answer);
      if (!result.ok()) answer.Fail(result.error());
    }
    answer.AppendTo(out);
  }
  return true;
}

}  // namespace control
