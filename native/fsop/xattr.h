// Extended attributes of the object behind an O_PATH descriptor, symlinks included.
#pragma once

#include <string>
#include <vector>

#include "sys/result.h"

namespace fsop {

// Empty where the filesystem has none.
sys::Result<std::vector<std::string>> ListXattrs(int object);
sys::Result<std::string> GetXattr(int object, const std::string& name);
sys::Result<void> SetXattr(int object, const std::string& name, const std::string& value);
// Removing what isn't there is fine.
sys::Result<void> RemoveXattr(int object, const std::string& name);

}  // namespace fsop
