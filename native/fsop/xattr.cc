#include "fsop/xattr.h"

#include <linux/limits.h>
#include <sys/xattr.h>

#include "fsop/roots.h"

namespace fsop {
namespace {

// Attributes may grow between asking for the size and reading.
constexpr int kMaxTries = 8;

// `call(buffer, size)` is listxattr or getxattr.
template <typename Call>
sys::Result<std::string> ReadGrowing(Call call, const char* where) {
  for (int tries = 0;; tries++) {
    ssize_t size = call(nullptr, 0);
    if (size < 0) return sys::LastError(where);
    if (size == 0) return std::string();
    std::string bytes(static_cast<size_t>(size), '\0');
    ssize_t got = call(bytes.data(), bytes.size());
    if (got >= 0) {
      bytes.resize(static_cast<size_t>(got));
      return bytes;
    }
    if (errno != ERANGE || tries == kMaxTries) return sys::LastError(where);
  }
}

}  // namespace

sys::Result<std::vector<std::string>> ListXattrs(int object) {
  std::string path = DescriptorPath(object);
  auto list = ReadGrowing([&](char* to, size_t size) { return listxattr(path.c_str(), to, size); }, "listxattr");
  if (!list.ok() && (list.error().number == EOPNOTSUPP || list.error().number == ENOSYS)) {
    return std::vector<std::string>();
  }
  if (!list.ok()) return list.error();
  std::vector<std::string> names;
  const std::string& text = list.value();
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\0', at);
    if (end == std::string::npos) end = text.size();
    names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

sys::Result<std::string> GetXattr(int object, const std::string& name) {
  std::string path = DescriptorPath(object);
  return ReadGrowing([&](char* to, size_t size) { return getxattr(path.c_str(), name.c_str(), to, size); }, "getxattr");
}

sys::Result<void> SetXattr(int object, const std::string& name, const std::string& value) {
  if (setxattr(DescriptorPath(object).c_str(), name.c_str(), value.data(), value.size(), 0) != 0) {
    return sys::LastError("setxattr");
  }
  return {};
}

sys::Result<void> RemoveXattr(int object, const std::string& name) {
  if (removexattr(DescriptorPath(object).c_str(), name.c_str()) != 0 && errno != ENODATA) {
    return sys::LastError("removexattr");
  }
  return {};
}

}  // namespace fsop
