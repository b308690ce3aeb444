#include "keeper/failure.h"

#include <cstring>

#include "control/errno_name.h"
#include "control/line.h"

namespace keeper {

Failure MakeFailure(int number, const char* where, const std::string& what) {
  return {number, where, what + ": " + strerror(number)};
}

std::string FailureLine(const Failure& failure) {
  std::string line = "error errno=" + std::to_string(failure.number) + " name=" + control::ErrnoName(failure.number);
  line += " where=";
  control::AppendEncoded(&line, failure.where);
  line += " message=";
  control::AppendEncoded(&line, failure.message);
  line += "\n";
  return line;
}

}  // namespace keeper
