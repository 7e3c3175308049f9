// The version of bide, from the build.

#pragma once

#include <string_view>

namespace bide::cli {

std::string_view version();  // "1.2.3"

}  // namespace bide::cli
