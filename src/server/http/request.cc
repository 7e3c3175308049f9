#include "server/http/request.h"

#include <algorithm>
#include <array>

#include "core/text.h"

namespace bide::server {

namespace {

constexpr std::array<std::string_view, 8> kMethodNames = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"};

}  // namespace

std::string_view to_string(Method method) { return kMethodNames[static_cast<std::size_t>(method)]; }

Method parse_method(std::string_view text) {
  const auto* const found = std::find(kMethodNames.begin(), kMethodNames.end() - 1, text);
  return static_cast<Method>(found - kMethodNames.begin());
}

bool is_same_text(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return core::lower_case(a) == core::lower_case(b); });
}

std::string_view Request::media_type() const {
  const std::string_view type = field("content-type");
  return type.substr(0, type.find_first_of("; \t"));
}

std::string_view Request::field(std::string_view lower_case_name) const {
  const auto found = fields.find(std::string(lower_case_name));
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace bide::server
