#include "server/http/head_guard.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "core/quote.h"

namespace bide::server {

namespace {

using wire::Problem;

constexpr std::string_view kLineEnd = "\r\n";
constexpr char kTlsHandshake = 0x16;

// Of these a second one is refused; of all others several are joined with commas, as the standard says.
constexpr std::array<std::string_view, 12> kOnlyOnce = {
    "host",   "content-length",  "transfer-encoding", "content-type",   "content-encoding", "authorization",
    "origin", "idempotency-key", "expect",            "sec-fetch-site", "sec-fetch-mode",   "last-event-id"};

Problem malformed(std::string detail) { return {.status = 400, .code = "malformed_request", .detail = std::move(detail)}; }
Problem ambiguous(std::string detail) { return {.status = 400, .code = "ambiguous_framing", .detail = std::move(detail)}; }

bool is_token(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return is_token(c); });
}
// Tabs, spaces, visible characters, and bytes above ASCII.
bool is_field_text(char c) { return static_cast<unsigned char>(c) >= 0x20 ? c != 0x7f : c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

Problem target_too_long(const HttpLimits& limits) {
  return {.status = 414,
          .code = "uri_too_long",
          .detail = "path and query together may have " + std::to_string(limits.target_bytes) + " bytes"};
}

Problem head_too_large(const HttpLimits& limits) {
  return {.status = 431,
          .code = "header_too_large",
          .detail = "request line and fields together may have " + std::to_string(limits.head_bytes) + " bytes in " +
                    std::to_string(limits.fields) + " fields"};
}

Problem spoke_tls() {
  return {.status = 400,
          .code = "tls_on_plain_port",
          .detail = "this port speaks plain HTTP and was spoken to in TLS: use http://, or start the server with a "
                    "certificate"};
}

std::optional<Problem> check_request_line(std::string_view line, const HttpLimits& limits, bool& is_http_1_0) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last || !is_token(line.substr(0, first))) {
    return malformed("the request line " + core::quoted(line) + " is not METHOD TARGET HTTP/1.1");
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (target.size() > limits.target_bytes) return target_too_long(limits);
  if (target.empty() || !std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c != 0x7f; })) {
    return malformed("the request target " + core::quoted(target) + " may hold visible ASCII characters only");
  }
  const std::string_view version = line.substr(last + 1);
  is_http_1_0 = version == "HTTP/1.0";
  if (is_http_1_0 || version == "HTTP/1.1") return std::nullopt;
  if (version.starts_with("HTTP/") && version.size() == 8) {
    return Problem{.status = 505,
                   .code = "version_not_supported",
                   .detail = "this server speaks HTTP/1.1 and HTTP/1.0, not " + core::quoted(version)};
  }
  return malformed("the request line " + core::quoted(line) + " does not end with HTTP/1.1");
}

// What decides where a request ends, and whom it is for.
struct Framing {
  std::array<bool, kOnlyOnce.size()> seen = {};
  bool has_host = false;
  bool has_length = false;
  bool is_chunked = false;
};

std::optional<Problem> check_field(std::string_view line, Framing& framing, bool is_http_1_0) {
  if (is_blank(line.front())) return malformed("a field that goes on in the next line (folding) is not accepted");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return malformed("the field " + core::quoted(line) + " is not NAME: VALUE, without a space before the colon");
  }
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), is_field_text)) {
    return malformed("the field " + core::quoted(name) + " holds a control character");
  }
  const auto once = std::find(kOnlyOnce.begin(), kOnlyOnce.end(), name);
  if (once == kOnlyOnce.end()) return std::nullopt;
  if (std::exchange(framing.seen[static_cast<std::size_t>(once - kOnlyOnce.begin())], true)) {
    return ambiguous("the field " + core::quoted(name) + " is given twice");
  }
  if (name == "host") {
    framing.has_host = true;
    if (!is_host(value)) return malformed("the host " + core::quoted(value) + " is not NAME or NAME:PORT");
  } else if (name == "content-length") {
    framing.has_length = true;
    if (value.empty() || !std::all_of(value.begin(), value.end(), is_digit)) {
      return ambiguous("the Content-Length " + core::quoted(value) + " is not a number of bytes");
    }
    // Still a number for everybody who reads on, and more than any limit.
    if (value.size() > 18) {
      return Problem{.status = 413, .code = "body_too_large", .detail = "a body of " + core::quoted(value) + " bytes is too large"};
    }
  } else if (name == "transfer-encoding") {
    framing.is_chunked = true;
    if (is_http_1_0) return ambiguous("Transfer-Encoding does not exist in HTTP/1.0");
    if (lower(value) != "chunked") return ambiguous("the Transfer-Encoding " + core::quoted(value) + " is not 'chunked'");
  }
  return std::nullopt;
}

}  // namespace

bool is_host(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~:[]%").find(c) != std::string_view::npos;
  });
}

std::optional<Problem> check_head(std::string_view head, const HttpLimits& limits) {
  if (auto problem = check_head_so_far(head, 0, limits)) return problem;
  bool is_http_1_0 = false;
  Framing framing;
  std::size_t fields = 0;
  for (std::size_t number = 0;; ++number) {
    const std::size_t end = head.find(kLineEnd);
    if (end == std::string_view::npos) return malformed("the head does not end with an empty line");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + kLineEnd.size());
    if (line.empty()) break;
    std::optional<Problem> problem = number == 0 ? check_request_line(line, limits, is_http_1_0)
                                                 : check_field(line, framing, is_http_1_0);
    if (problem) return problem;
    if (number > 0 && ++fields > limits.fields) return head_too_large(limits);
  }
  if (!framing.has_host && !is_http_1_0) return malformed("the field Host is missing");
  if (framing.has_length && framing.is_chunked) {
    return ambiguous("Content-Length and Transfer-Encoding contradict each other");
  }
  return std::nullopt;
}

std::optional<Problem> check_head_so_far(std::string_view bytes, std::size_t seen, const HttpLimits& limits) {
  if (bytes.empty()) return std::nullopt;
  if (bytes.front() == kTlsHandshake) return spoke_tls();
  if (!is_token(bytes.front())) {
    return malformed("a request begins with its method, not with " + core::quoted(bytes.substr(0, 16)));
  }
  // A method, two spaces and the version.
  const std::size_t longest_line = limits.target_bytes + 32;
  if (bytes.size() > longest_line && bytes.substr(0, longest_line).find(kLineEnd) == std::string_view::npos) {
    return target_too_long(limits);
  }
  if (bytes.size() > limits.head_bytes) return head_too_large(limits);
  // The last byte that was seen may have been a CR.
  for (std::size_t i = seen == 0 ? 0 : seen - 1; i < bytes.size(); ++i) {
    const char c = bytes[i];
    const bool alone = (c == '\n' && (i == 0 || bytes[i - 1] != '\r')) ||
                       (c == '\r' && i + 1 < bytes.size() && bytes[i + 1] != '\n') || c == '\0';
    if (alone) return malformed("lines end with CR LF, and hold neither of them nor NUL anywhere else");
  }
  return std::nullopt;
}

}  // namespace bide::server
