// Lines for people in the store's `engine.log` (standard error of keeper, guard and engine).
#pragma once

namespace keeper {

// One line: time, process, message. A single write, so that lines of several processes don't mix.
void Log(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace keeper
