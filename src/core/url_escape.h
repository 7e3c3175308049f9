// %XX in the parts of a URL: a path that holds a question mark, a password that holds an @.

#pragma once

#include <string>
#include <string_view>

#include "bide/result.h"

namespace bide::core {

// kInvalidArgument: a % without two hexadecimal digits behind it, or %00, which no path and no setting holds. What was
// given is not repeated: it may be a password.
Result<std::string> unescape_url(std::string_view text);

}  // namespace bide::core
