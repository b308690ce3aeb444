// The version that `turnfs-engine version` and the control socket's `hello` say; the same as in package.json.
#pragma once

namespace control {

constexpr char kVersion[] = "0.1.0";

}  // namespace control
