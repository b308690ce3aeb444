// Why mounting or unmounting did not work, with a sentence for people.
#pragma once

#include <string>

#include "sys/result.h"

namespace keeper {

struct Failure {
  int number = 0;  // errno; 0: no failure
  std::string where;
  std::string message;

  bool failed() const { return number != 0; }
};

// `what` and the errno's text become the message: "what: No such file or directory".
Failure MakeFailure(int number, const char* where, const std::string& what);

// "error errno=2 name=ENOENT where=open message=…", values percent-coded as in PROTOCOL.md, with a newline.
std::string FailureLine(const Failure& failure);

}  // namespace keeper
