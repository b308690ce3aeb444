#include "keeper/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace keeper {

void Log(const char* format, ...) {
  char line[2048];
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc;
  gmtime_r(&now.tv_sec, &utc);
  size_t used = strftime(line, sizeof line, "%FT%T", &utc);
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  used += static_cast<size_t>(
      snprintf(line + used, sizeof line - used, ".%03ldZ %s[%d] ", now.tv_nsec / 1000000, name, getpid()));
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
  va_end(arguments);
  if (wanted > 0) used = std::min(used + static_cast<size_t>(wanted), sizeof line - 2);
  line[used++] = '\n';
  // Nowhere to complain about a log that can't be written.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line, used);
}

}  // namespace keeper
