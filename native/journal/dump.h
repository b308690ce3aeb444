// `turnfs-engine dump FILE`: prints a journal file record by record, or a pack's header. Damaged files too.
#pragma once

#include <string>
#include <string_view>

#include "journal/reader.h"

namespace journal {

// One line for a record, without its newline. Bytes that aren't printable ASCII appear as \xNN.
std::string Describe(const Frame& frame);

// Prints the file to stdout. Exit status: 0 readable to its end, 1 damaged or not readable (said on stdout or stderr).
int DumpMain(const char* path);

}  // namespace journal
