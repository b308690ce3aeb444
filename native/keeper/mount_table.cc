#include "keeper/mount_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <vector>

#include "control/line.h"
#include "sys/fd.h"

namespace keeper {
namespace {

// The kernel writes blanks, tabs, newlines and backslashes as \ooo.
std::string Unescape(std::string_view text) {
  auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string bytes;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      bytes.push_back(static_cast<char>((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 | (text[i + 3] - '0')));
      i += 3;
    } else {
      bytes.push_back(text[i]);
    }
  }
  return bytes;
}

std::vector<std::string_view> SplitWords(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    size_t space = line.find(' ');
    words.push_back(line.substr(0, space));
    line = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  }
  return words;
}

// "36 35 98:0 /root /mountpoint options [optional fields] - type source options"
std::optional<MountEntry> ParseLine(std::string_view line) {
  std::vector<std::string_view> words = SplitWords(line);
  if (words.size() < 9) return std::nullopt;
  MountEntry entry;
  uint64_t major = 0;
  uint64_t minor = 0;
  size_t colon = words[2].find(':');
  if (colon == std::string_view::npos || !control::ParseUnsigned(words[0], &entry.id) ||
      !control::ParseUnsigned(words[2].substr(0, colon), &major) ||
      !control::ParseUnsigned(words[2].substr(colon + 1), &minor)) {
    return std::nullopt;
  }
  entry.device_major = static_cast<uint32_t>(major);
  entry.device_minor = static_cast<uint32_t>(minor);
  entry.mountpoint = Unescape(words[4]);
  for (size_t i = 6; i + 1 < words.size(); i++) {
    if (words[i] == "-") {
      entry.type = Unescape(words[i + 1]);
      return entry;
    }
  }
  return std::nullopt;
}

std::string ReadTable() {
  std::string table;
  sys::UniqueFd fd(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  char bytes[16384];
  for (ssize_t got; fd.valid() && (got = read(fd.get(), bytes, sizeof bytes)) > 0;) {
    table.append(bytes, static_cast<size_t>(got));
  }
  return table;
}

}  // namespace

std::optional<MountEntry> FindMountIn(std::string_view table, const std::string& mountpoint) {
  // A later line of the same path lies on top.
  std::optional<MountEntry> topmost;
  while (!table.empty()) {
    size_t newline = table.find('\n');
    auto entry = ParseLine(table.substr(0, newline));
    if (entry.has_value() && entry->mountpoint == mountpoint) topmost = std::move(entry);
    table = newline == std::string_view::npos ? std::string_view() : table.substr(newline + 1);
  }
  return topmost;
}

std::optional<MountEntry> FindMount(const std::string& mountpoint) { return FindMountIn(ReadTable(), mountpoint); }

}  // namespace keeper
