// The line codec of PROTOCOL.md, shared by the control socket and by `fsop`: percent coding, requests, answers, and a
// reader that turns arriving bytes into lines. Pure: no descriptors, no locks. What comes in is never trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sys/result.h"

namespace control {

// A longer request is answered EMSGSIZE and skipped up to its end.
constexpr size_t kMaxLineBytes = 1u << 20;

// Appends `bytes` percent-coded: what is not one of A–Z a–z 0–9 . _ / - : , + becomes %XX.
void AppendEncoded(std::string* out, std::string_view bytes);
// The opposite. False for bytes that had to be coded and for broken codes (then *bytes is unspecified).
bool Decode(std::string_view text, std::string* bytes);
// Strictly decimal: no sign, no blanks, no overflow.
bool ParseUnsigned(std::string_view text, uint64_t* number);
bool ParseSigned(std::string_view text, int64_t* number);
// Hex digits, two a byte, either case.
bool DecodeHex(std::string_view hex, std::string* bytes);
void AppendHex(std::string* out, std::string_view bytes);

struct Field {
  std::string key;
  std::string value;  // decoded bytes
};

struct Request {
  uint64_t id = 0;
  std::string verb;
  std::vector<Field> fields;

  // The first field with this key, or nullptr.
  const std::string* Find(std::string_view key) const;
  // Fields that must be there. `key` is a string literal: a missing or malformed one is EINVAL with the key as `where`.
  sys::Result<std::string> Text(const char* key) const;
  sys::Result<uint64_t> Unsigned(const char* key, uint64_t max = UINT64_MAX) const;
  sys::Result<int64_t> Signed(const char* key) const;
  // The same for fields that may be left out.
  sys::Result<uint64_t> UnsignedOr(const char* key, uint64_t otherwise, uint64_t max = UINT64_MAX) const;
};

// Takes a line without its newline apart. Sets request->id also when it fails, if the line began with a number.
sys::Result<void> ParseRequest(std::string_view line, Request* request);

// One answer. Fields added before Fail are dropped by it.
class Answer {
 public:
  explicit Answer(uint64_t id) : id_(id) {}
  void Add(std::string_view key, std::string_view value);
  void AddUnsigned(std::string_view key, uint64_t number);
  void AddSigned(std::string_view key, int64_t number);
  void Fail(sys::Error error);
  bool failed() const { return failed_; }
  // Appends the line with its newline.
  void AppendTo(std::string* out) const;

 private:
  uint64_t id_;
  bool failed_ = false;
  std::string fields_;  // encoded, each with a space before it
};

// Bytes in, lines out. Holds at most one unfinished line and what arrived after it.
class LineReader {
 public:
  enum class Next { kNothing, kLine, kOverlong };

  void Append(std::string_view bytes);
  // kLine: *line without its newline, valid until the next Append. kOverlong: *line is the beginning of a line that
  // was too long, told once; the rest of it is dropped as it arrives.
  Next Take(std::string_view* line);

 private:
  std::string buffer_;
  size_t begin_ = 0;    // what is before was taken
  size_t scanned_ = 0;  // no newline between begin_ and here
  bool dropping_ = false;
};

}  // namespace control
