// without_secrets(): a text that may hold URLs, with the passwords in them left out.
//
//   without_secrets("cannot reach amqp://ann:pass@host/")   cannot reach amqp://ann:***@host/

#pragma once

#include <string>
#include <string_view>

namespace bide::core {

// What stands after `://NAME:` up to `@` becomes ***; so does what stands there when the text was cut before the `@`.
// A port is left as it is.
std::string without_secrets(std::string_view text);

}  // namespace bide::core
