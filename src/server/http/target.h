// Target: what a request line asks for, taken apart: "/v1/jobs/a%20b?state=dead".

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "wire/problem.h"

namespace bide::server {

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
