#include "server/http/request.h"

#include <array>

namespace bide::server {

namespace {

constexpr std::array<std::string_view, 8> kNames = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"};

}  // namespace

std::string_view to_string(Method method) { return kNames[static_cast<std::size_t>(method)]; }

std::string_view Request::field(std::string_view lower_case_name) const {
  const auto found = fields.find(std::string(lower_case_name));
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace bide::server
