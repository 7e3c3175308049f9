#include "http_client/transfer.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "core/text.h"

namespace bide::http_client {

namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

struct CloseUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

// Nothing when the URL does not have it.
std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string value = text;
  curl_free(text);
  return value;
}

bool is_field_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

Result<std::string> connect_to(const std::string& address) {
  if (address.empty()) return std::string();
  unsigned char bytes[16];
  if (inet_pton(AF_INET, address.c_str(), bytes) == 1) return "::" + address + ":";
  if (inet_pton(AF_INET6, address.c_str(), bytes) == 1) return "::[" + address + "]:";
  return invalid("a pinned address must be numeric");
}

}  // namespace

Result<Destination> destination_of(const HttpRequest& request) {
  if (!core::is_token(request.method)) return invalid("the method is not a word of HTTP");
  for (const auto& [name, value] : request.fields) {
    if (!core::is_token(name)) return invalid("the name of a field is not a word of HTTP");
    if (!is_field_value(value)) return invalid("the field " + name + " has a line break or a zero byte");
  }
  // The library makes the best of these, and others make something else of them.
  if (std::any_of(request.url.begin(), request.url.end(), [](char c) { return (c >= '\0' && c <= ' ') || c == '\\'; })) {
    return invalid("the URL has a space, a backslash or a control character");
  }
  if (request.url.find("///") == request.url.find("//")) return invalid("the URL has no host");

  const std::unique_ptr<CURLU, CloseUrl> url(curl_url());
  if (const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, request.url.c_str(), CURLU_NON_SUPPORT_SCHEME);
      code != CURLUE_OK) {
    return invalid(std::string("not a URL: ") + curl_url_strerror(code));
  }
  const std::string scheme = part_of(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return invalid("only http: and https: URLs are sent to");
  if (!part_of(url.get(), CURLUPART_USER).empty() || !part_of(url.get(), CURLUPART_PASSWORD).empty()) {
    return invalid("a URL with a name and a password is not sent to");
  }

  Destination destination;
  destination.host = part_of(url.get(), CURLUPART_HOST);
  destination.key = scheme + "://" + destination.host + ":" + part_of(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (destination.host.starts_with('[')) destination.host = destination.host.substr(1, destination.host.size() - 2);
  if (!request.unix_socket.empty()) destination.key += " by " + request.unix_socket;
  Result<std::string> pinned = connect_to(request.pinned_address);
  if (!pinned) return pinned.error();
  destination.connect_to = std::move(*pinned);
  return destination;
}

}  // namespace bide::http_client
