// Request: one HTTP request, whole, checked and decoded, as a route sees it.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "server/http/identity.h"

namespace bide::server {

enum class Method : std::uint8_t { kGet, kHead, kPost, kPut, kPatch, kDelete, kOptions, kOther };

std::string_view to_string(Method method);
Method parse_method(std::string_view text);  // kOther when it is none of them; case counts.

// Without regard to case, as most of what fields hold is to be compared.
bool is_same_text(std::string_view one, std::string_view other);

struct Request {
  Method method = Method::kGet;
  std::string path = {};                            // Without the query; the parts of `captured` are percent-decoded.
  std::map<std::string, std::string> captured = {};  // {"id", "..."} for /v1/jobs/{id}.
  std::map<std::string, std::string> query = {};    // Decoded; a name that comes twice was refused before.
  std::map<std::string, std::string> fields = {};   // Names in lower case.
  std::string body = {};                            // Without its content coding.
  std::string peer = {};                            // An address, or "unix".
  bool peer_is_our_user = false;                    // It is a process of this machine and of the server's own user.
  Identity caller = {};

  std::string_view field(std::string_view lower_case_name) const;  // Empty when it is not there.
  std::string_view media_type() const;  // Of Content-Type, without its parameters; case does not count.
};

}  // namespace bide::server
