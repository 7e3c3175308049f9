// system_error: the one place where an errno becomes an Error, so that the real and the simulated disk answer alike.

#pragma once

#include <string_view>

#include "bide/result.h"

namespace bide::platform {

// kCreate: something new was to be made, so a missing or unsuitable place is kCannotCreate instead of kNotFound.
enum class Purpose { kUse, kCreate };

// "cannot open /x/y: Permission denied"
Error system_error(int error_number, std::string_view action, std::string_view path, Purpose purpose = Purpose::kUse);

// "cannot rename /x/a to /x/b: No such file or directory"
Error rename_error(int error_number, std::string_view from, std::string_view to);

}  // namespace bide::platform
