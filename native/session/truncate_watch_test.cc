#include "session/truncate_watch.h"

#include <stdio.h>

namespace {

int failures = 0;

void Check(bool ok, const char* what) {
  if (ok) return;
  ++failures;
  fprintf(stderr, "FAILED: %s\n", what);
}

}  // namespace

int main() {
  session::TruncateWatch watch;
  watch.FlushBegin();
  Check(!watch.FlushEnd(), "a quiet flush is enough");

  watch.Begin(7);
  watch.FlushBegin();
  Check(watch.FlushEnd(), "a SETATTR in flight at the beginning wants another flush");
  watch.FlushBegin();
  Check(watch.FlushEnd(), "and another while it is still in flight");
  watch.End(7);
  watch.FlushBegin();
  Check(!watch.FlushEnd(), "and none after it was answered");

  watch.FlushBegin();
  watch.Begin(8);
  watch.End(8);
  Check(watch.FlushEnd(), "one that began and ended during the flush counts too");
  watch.FlushBegin();
  watch.Begin(9);
  Check(!watch.FlushEnd(), "an inode that the first flush did not miss does not hold the barrier up");
  watch.End(9);

  int rounds = 0;
  watch.Begin(10);
  do {
    watch.FlushBegin();
    ++rounds;
  } while (watch.FlushEnd() && rounds < 1000);
  Check(rounds > 1 && rounds < 1000, "constant truncation of one file ends in bounded time");
  return failures == 0 ? 0 : 1;
}
