// Parts of URLs: %XX, as in a path that holds a question mark or a password that holds an @; the options of a broker's
// URL behind its question mark; and the password, which is not shown.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "bide/result.h"

namespace bide::core {

// kInvalidArgument: a % without two hexadecimal digits behind it, or %00, which no path and no setting holds. What was
// given is not repeated: it may be a password.
Result<std::string> unescape_url(std::string_view text);

// Everything but letters, digits and - _ . ~ becomes %XX.
std::string escape_url(std::string_view text);

// What is behind the first question mark; empty when there is none.
std::string_view query_of(std::string_view url);

// name=value&name=value. Stops at the first error.
Status apply_url_options(std::string_view query,
                         const std::function<Status(std::string_view name, std::string_view escaped_value)>& apply);
Error unknown_url_option(std::string_view name, std::span<const std::string_view> known);

// A text that may hold URLs, with the passwords in them left out:
//
//   without_secrets("cannot reach amqp://ann:pass@host/")   cannot reach amqp://ann:***@host/
//
// What stands after `://NAME:` up to `@` becomes ***; so does what stands there when the text was cut before the `@`.
// A port is left as it is.
std::string without_secrets(std::string_view text);

}  // namespace bide::core
