#include "control/line.h"

#include <charconv>
#include <cstring>

#include "control/errno_name.h"

namespace control {
namespace {

constexpr char kUpperHex[] = "0123456789ABCDEF";
constexpr char kLowerHex[] = "0123456789abcdef";
// Enough of an overlong line to find the number it began with.
constexpr size_t kOverlongHeadBytes = 32;

bool IsPlain(unsigned char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '/' || c == '-' || c == ':' || c == ',' || c == '+';
}

bool IsKeyCharacter(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

int UpperHexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int HexValue(char c) { return c >= 'a' && c <= 'f' ? c - 'a' + 10 : UpperHexValue(c); }

template <typename Number>
bool ParseWhole(std::string_view text, Number* number) {
  if (text.empty()) return false;
  const char* end = text.data() + text.size();
  auto [stopped, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stopped == end;
}

// Cuts the next word off *rest; words are separated by exactly one space, so an empty word is an error of the caller's.
std::string_view CutWord(std::string_view* rest) {
  size_t space = rest->find(' ');
  std::string_view word = rest->substr(0, space);
  *rest = space == std::string_view::npos ? std::string_view() : rest->substr(space + 1);
  return word;
}

sys::Result<Field> ParseField(std::string_view word) {
  size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return sys::Error{EINVAL, "field"};
  std::string_view key = word.substr(0, equals);
  for (unsigned char c : key) {
    if (!IsKeyCharacter(c)) return sys::Error{EINVAL, "key"};
  }
  Field field{std::string(key), {}};
  if (!Decode(word.substr(equals + 1), &field.value)) return sys::Error{EINVAL, "value"};
  return field;
}

}  // namespace

void AppendEncoded(std::string* out, std::string_view bytes) {
  for (unsigned char c : bytes) {
    if (IsPlain(c)) {
      out->push_back(static_cast<char>(c));
    } else {
      const char coded[3] = {'%', kUpperHex[c >> 4], kUpperHex[c & 15]};
      out->append(coded, sizeof coded);
    }
  }
}

bool Decode(std::string_view text, std::string* bytes) {
  bytes->clear();
  bytes->reserve(text.size());
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '%') {
      if (!IsPlain(static_cast<unsigned char>(text[i]))) return false;
      bytes->push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return false;
    int high = UpperHexValue(text[i + 1]);
    int low = UpperHexValue(text[i + 2]);
    if (high < 0 || low < 0) return false;
    bytes->push_back(static_cast<char>(high << 4 | low));
    i += 2;
  }
  return true;
}

bool ParseUnsigned(std::string_view text, uint64_t* number) { return ParseWhole(text, number); }
bool ParseSigned(std::string_view text, int64_t* number) { return ParseWhole(text, number); }

bool DecodeHex(std::string_view hex, std::string* bytes) {
  bytes->clear();
  if (hex.size() % 2 != 0) return false;
  for (size_t i = 0; i < hex.size(); i += 2) {
    int high = HexValue(hex[i]);
    int low = HexValue(hex[i + 1]);
    if (high < 0 || low < 0) return false;
    bytes->push_back(static_cast<char>(high << 4 | low));
  }
  return true;
}

void AppendHex(std::string* out, std::string_view bytes) {
  for (unsigned char c : bytes) {
    out->push_back(kLowerHex[c >> 4]);
    out->push_back(kLowerHex[c & 15]);
  }
}

const std::string* Request::Find(std::string_view key) const {
  for (const Field& field : fields) {
    if (field.key == key) return &field.value;
  }
  return nullptr;
}

sys::Result<std::string> Request::Text(const char* key) const {
  const std::string* value = Find(key);
  if (value == nullptr) return sys::Error{EINVAL, key};
  return *value;
}

sys::Result<uint64_t> Request::Unsigned(const char* key, uint64_t max) const {
  const std::string* value = Find(key);
  uint64_t number = 0;
  if (value == nullptr || !ParseUnsigned(*value, &number) || number > max) return sys::Error{EINVAL, key};
  return number;
}

sys::Result<int64_t> Request::Signed(const char* key) const {
  const std::string* value = Find(key);
  int64_t number = 0;
  if (value == nullptr || !ParseSigned(*value, &number)) return sys::Error{EINVAL, key};
  return number;
}

sys::Result<uint64_t> Request::UnsignedOr(const char* key, uint64_t otherwise, uint64_t max) const {
  if (Find(key) == nullptr) return otherwise;
  return Unsigned(key, max);
}

sys::Result<void> ParseRequest(std::string_view line, Request* request) {
  *request = Request();
  std::string_view rest = line;
  if (!ParseUnsigned(CutWord(&rest), &request->id)) {
    request->id = 0;
    return sys::Error{EINVAL, "id"};
  }
  // A space at the very end would be an empty word that CutWord can't see any more.
  if (!line.empty() && line.back() == ' ') return sys::Error{EINVAL, "space"};
  std::string_view verb = CutWord(&rest);
  if (verb.empty()) return sys::Error{EINVAL, "verb"};
  request->verb = verb;
  while (!rest.empty()) {
    auto field = ParseField(CutWord(&rest));
    if (!field.ok()) return field.error();
    request->fields.push_back(std::move(field.value()));
  }
  return {};
}

void Answer::Add(std::string_view key, std::string_view value) {
  if (failed_) return;
  fields_.push_back(' ');
  fields_.append(key);
  fields_.push_back('=');
  AppendEncoded(&fields_, value);
}

void Answer::AddUnsigned(std::string_view key, uint64_t number) { Add(key, std::to_string(number)); }
void Answer::AddSigned(std::string_view key, int64_t number) { Add(key, std::to_string(number)); }

void Answer::Fail(sys::Error error) {
  fields_.clear();
  failed_ = false;
  AddSigned("errno", error.number);
  Add("name", ErrnoName(error.number));
  Add("where", error.where);
  failed_ = true;
}

void Answer::AppendTo(std::string* out) const {
  out->append(std::to_string(id_));
  out->append(failed_ ? " err" : " ok");
  out->append(fields_);
  out->push_back('\n');
}

void LineReader::Append(std::string_view bytes) {
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = scanned_ = 0;
  } else if (begin_ > buffer_.size() / 2) {
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  buffer_.append(bytes);
}

LineReader::Next LineReader::Take(std::string_view* line) {
  for (;;) {
    size_t newline = buffer_.find('\n', scanned_);
    bool ended = newline != std::string::npos;
    size_t end = ended ? newline : buffer_.size();
    if (dropping_) {
      begin_ = scanned_ = ended ? end + 1 : end;
      if (!ended) return Next::kNothing;
      dropping_ = false;
      continue;
    }
    size_t length = end - begin_;
    if (length > kMaxLineBytes) {
      *line = std::string_view(buffer_).substr(begin_, kOverlongHeadBytes);
      begin_ = scanned_ = ended ? end + 1 : end;
      dropping_ = !ended;
      return Next::kOverlong;
    }
    scanned_ = end;
    if (!ended) return Next::kNothing;
    *line = std::string_view(buffer_).substr(begin_, length);
    begin_ = scanned_ = end + 1;
    return Next::kLine;
  }
}

}  // namespace control
