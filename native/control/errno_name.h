// Names of errno values. glibc has strerrorname_np only since 2.32 and musl not at all.
#pragma once

namespace control {

// "ENOENT" for 2; "EUNKNOWN" for a number that has no name here. A string literal.
const char* ErrnoName(int number);

}  // namespace control
