// For the test programs beside the code (*_test.cc): CHECK complains and counts, Finish gives main's exit status.
#pragma once

#include <stdio.h>

namespace check {

inline int failures = 0;

inline void Report(bool held, const char* what, const char* file, int line) {
  if (held) return;
  failures++;
  fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
}

inline int Finish(const char* name) {
  if (failures == 0) printf("%s: passed\n", name);
  return failures == 0 ? 0 : 1;
}

}  // namespace check

#define CHECK(condition) check::Report(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
