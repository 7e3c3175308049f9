// The guard before the parser: looks at the raw head of a request and refuses whatever two programs could read in two
// ways. What it lets through has one meaning, so that nothing can be smuggled past a proxy in front of us.
//
// Beast 1.81 alone accepts folded lines, takes the first of two Host fields, ignores a Transfer-Encoding that it does not
// know, and joins equal Content-Lengths.

#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "server/http/limits.h"
#include "wire/problem.h"

namespace bide::server {

// `head` ends with its empty line. Nothing: it is well formed, and its framing is certain.
std::optional<wire::Problem> check_head(std::string_view head, const HttpLimits& limits);

// NAME or NAME:PORT, as far as its characters go; not empty.
bool is_host(std::string_view text);

// The same for a head whose end has not come yet: is it too long already, or not HTTP at all? The bytes before `seen`
// have been looked at before.
std::optional<wire::Problem> check_head_so_far(std::string_view bytes, std::size_t seen, const HttpLimits& limits);

}  // namespace bide::server
