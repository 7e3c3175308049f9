// fold_error: what errors of the same cause have in common. Numbers, ids, addresses and quoted texts become signs:
//
//   "connect to 10.0.0.7:5432 timed out after 3001 ms"  ->  "connect to * timed out after # ms"
//   "no user 'kim' (0x7ffe12, 018f3c1e-7d5a-...)"       ->  "no user '*' (*, *)"

#pragma once

#include <string>
#include <string_view>

namespace bide::core {

// The first line, of at most 300 bytes.
std::string fold_error(std::string_view error);

}  // namespace bide::core
