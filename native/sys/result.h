// Result<T>: a value, or the errno of the system call that failed and its name. Nothing in the engine throws.
#pragma once

#include <cerrno>
#include <optional>
#include <utility>

namespace sys {

struct Error {
  int number;         // errno, > 0
  const char* where;  // the call that failed, a string literal
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by intent
  Result(Error error) : error_(error) {}         // NOLINT: implicit by intent
  bool ok() const { return value_.has_value(); }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  Error error() const { return error_; }

 private:
  std::optional<T> value_;
  Error error_{0, ""};
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(error) {}  // NOLINT: implicit by intent
  bool ok() const { return error_.number == 0; }
  Error error() const { return error_; }

 private:
  Error error_{0, ""};
};

inline Error LastError(const char* where) { return Error{errno, where}; }

}  // namespace sys
