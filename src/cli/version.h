// The version of bide, from the build.

#pragma once

#include <string_view>

namespace bide::cli {

inline constexpr std::string_view kVersion = BIDE_VERSION;

}  // namespace bide::cli
