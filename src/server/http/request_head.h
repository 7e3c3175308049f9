// RequestHead: the request line and the header fields of one HTTP/1.x request, parsed once. Whatever two programs could read
// in two ways is refused, so that nothing can be smuggled past a proxy in front of us: folded lines, a bare CR or LF, a second
// Host or Content-Length, a Transfer-Encoding that is not "chunked" or stands beside a Content-Length.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "server/http/limits.h"
#include "server/http/request.h"
#include "wire/problem.h"

namespace bide::server {

struct RequestHead {
  Request request = {};  // All but its body, its peer and its caller.
  bool is_http_1_0 = false;
  bool keep_alive = false;
  bool is_chunked = false;
  std::optional<std::uint64_t> content_length = {};

  bool has_body() const { return is_chunked || content_length.value_or(0) > 0; }
};

// `text` ends with the empty line. A field that comes several times has its values joined with commas, or is refused where
// only one makes sense.
std::variant<RequestHead, wire::Problem> parse_head(std::string_view text, const HttpLimits& limits);

// For a head whose end has not come yet: is it too long already, or not HTTP at all? The bytes before `checked` were
// checked by an earlier call.
std::optional<wire::Problem> check_partial_head(std::string_view bytes, std::size_t checked, const HttpLimits& limits);

// What a request line asks for, taken apart: "/v1/jobs/a%20b?state=dead".
struct Target {
  std::string authority = {};                     // Of the absolute form: "name:80". Then it counts, and not Host.
  std::string path = {};                          // As it came, not decoded: "/v1/jobs/a%20b".
  std::map<std::string, std::string> query = {};  // Decoded.
};

// Origin form, absolute form, and "*". Problems: invalid_target, duplicate_parameter.
std::variant<Target, wire::Problem> parse_target(std::string_view text);

// NAME or NAME:PORT, as far as its characters go; not empty.
bool is_host(std::string_view text);

// False: an escape that is none, or a byte that no text holds (NUL).
bool percent_decode(std::string_view text, bool plus_is_space, std::string& out);

}  // namespace bide::server
