#include "server/http/request_head.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "core/quote.h"
#include "core/text.h"

namespace bide::server {

namespace {

using wire::Problem;

constexpr std::string_view kLineEnd = "\r\n";
constexpr char kTlsHandshake = 0x16;

// A second one of these is refused.
constexpr std::array<std::string_view, 12> kOnlyOnce = {
    "host",   "content-length",  "transfer-encoding", "content-type",   "content-encoding", "authorization",
    "origin", "idempotency-key", "expect",            "sec-fetch-site", "sec-fetch-mode",   "last-event-id"};

Problem malformed(std::string detail) { return {.status = 400, .code = "malformed_request", .detail = std::move(detail)}; }
Problem ambiguous(std::string detail) { return {.status = 400, .code = "ambiguous_framing", .detail = std::move(detail)}; }

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

Problem tls_on_plain_port() {
  return {.status = 400,
          .code = "tls_on_plain_port",
          .detail = "this port speaks plain HTTP and was spoken to in TLS: use http://, or start the server with a "
                    "certificate"};
}

// Tabs, spaces, visible characters, and bytes above ASCII.
bool is_field_text(char c) { return static_cast<unsigned char>(c) >= 0x20 ? c != 0x7f : c == '\t'; }
bool is_visible(char c) { return c > 0x20 && c != 0x7f; }

class HeadParser {
 public:
  explicit HeadParser(const HttpLimits& limits) : limits_(limits) {}

  // Each gives the problem, or nothing.
  std::optional<Problem> parse(std::string_view text) {
    if (auto problem = check_partial_head(text, 0, limits_)) return problem;
    for (std::size_t number = 0;; ++number) {
      const std::size_t end = text.find(kLineEnd);
      if (end == std::string_view::npos) return malformed("the head does not end with an empty line");
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(end + kLineEnd.size());
      if (line.empty()) break;
      if (auto problem = number == 0 ? parse_request_line(line) : parse_field(line)) return problem;
      if (number > limits_.fields) return head_too_large(limits_);
    }
    if (!head_.request.fields.contains("host") && !head_.is_http_1_0) return malformed("the field Host is missing");
    if (head_.content_length && head_.is_chunked) {
      return ambiguous("Content-Length and Transfer-Encoding contradict each other");
    }
    head_.keep_alive = head_.is_http_1_0 ? asks_keep_alive_ : !asks_close_;
    return apply_target();
  }

  RequestHead take() { return std::move(head_); }

 private:
  std::optional<Problem> parse_request_line(std::string_view line) {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last || !core::is_token(line.substr(0, first))) {
      return malformed("the request line " + core::quoted(line) + " is not METHOD TARGET HTTP/1.1");
    }
    head_.request.method = parse_method(line.substr(0, first));
    target_ = line.substr(first + 1, last - first - 1);
    if (target_.size() > limits_.target_bytes) return target_too_long(limits_);
    if (target_.empty() || !std::all_of(target_.begin(), target_.end(), is_visible)) {
      return malformed("the request target " + core::quoted(target_) + " may hold visible ASCII characters only");
    }
    const std::string_view version = line.substr(last + 1);
    head_.is_http_1_0 = version == "HTTP/1.0";
    if (head_.is_http_1_0 || version == "HTTP/1.1") return std::nullopt;
    if (version.starts_with("HTTP/") && version.size() == 8) {
      return Problem{.status = 505,
                     .code = "version_not_supported",
                     .detail = "this server speaks HTTP/1.1 and HTTP/1.0, not " + core::quoted(version)};
    }
    return malformed("the request line " + core::quoted(line) + " does not end with HTTP/1.1");
  }

  std::optional<Problem> parse_field(std::string_view line) {
    if (line.front() == ' ' || line.front() == '\t') {
      return malformed("a field that goes on in the next line (folding) is not accepted");
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !core::is_token(line.substr(0, colon))) {
      return malformed("the field " + core::quoted(line) + " is not NAME: VALUE, without a space before the colon");
    }
    const std::string_view value = core::trimmed(line.substr(colon + 1));
    const auto [field, is_new] = head_.request.fields.try_emplace(core::lower_case(line.substr(0, colon)), value);
    const std::string& name = field->first;
    if (!std::all_of(value.begin(), value.end(), is_field_text)) {
      return malformed("the field " + core::quoted(name) + " holds a control character");
    }
    if (!is_new) {
      if (std::find(kOnlyOnce.begin(), kOnlyOnce.end(), name) != kOnlyOnce.end()) {
        return ambiguous("the field " + core::quoted(name) + " is given twice");
      }
      field->second.append(name == "cookie" ? "; " : ", ").append(value);
    }
    return interpret_field(name, value);
  }

  // What decides where a request ends, whom it is for, and whether the connection stays open.
  std::optional<Problem> interpret_field(std::string_view name, std::string_view value) {
    if (name == "host") {
      if (!is_host(value)) return malformed("the host " + core::quoted(value) + " is not NAME or NAME:PORT");
    } else if (name == "content-length") {
      return parse_content_length(value);
    } else if (name == "transfer-encoding") {
      head_.is_chunked = true;
      if (head_.is_http_1_0) return ambiguous("Transfer-Encoding does not exist in HTTP/1.0");
      if (!is_same_text(value, "chunked")) {
        return ambiguous("the Transfer-Encoding " + core::quoted(value) + " is not 'chunked'");
      }
    } else if (name == "connection" || name == "proxy-connection") {
      return parse_connection(value);
    }
    return std::nullopt;
  }

  std::optional<Problem> parse_content_length(std::string_view value) {
    if (value.empty() || !std::all_of(value.begin(), value.end(), core::is_digit)) {
      return ambiguous("the Content-Length " + core::quoted(value) + " is not a number of bytes");
    }
    // More than any limit, and still a number for every program that reads on.
    if (value.size() > 18) {
      return Problem{.status = 413, .code = "body_too_large", .detail = "a body of " + core::quoted(value) + " bytes is too large"};
    }
    std::from_chars(value.data(), value.data() + value.size(), head_.content_length.emplace());
    return std::nullopt;
  }

  std::optional<Problem> parse_connection(std::string_view value) {
    for (std::string_view rest = value; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view option = core::trimmed(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (option.empty()) continue;
      if (!core::is_token(option)) return malformed("the field Connection is not a list of names: " + core::quoted(value));
      asks_close_ = asks_close_ || is_same_text(option, "close");
      asks_keep_alive_ = asks_keep_alive_ || is_same_text(option, "keep-alive");
    }
    return std::nullopt;
  }

  std::optional<Problem> apply_target() {
    std::variant<Target, Problem> parsed = parse_target(target_);
    if (auto* problem = std::get_if<Problem>(&parsed)) return std::move(*problem);
    Target& target = std::get<Target>(parsed);
    head_.request.path = std::move(target.path);
    head_.request.query = std::move(target.query);
    // The host of an absolute target counts, not the Host field.
    if (!target.authority.empty()) head_.request.fields["host"] = std::move(target.authority);
    return std::nullopt;
  }

  const HttpLimits& limits_;
  std::string_view target_;
  RequestHead head_;
  bool asks_close_ = false;
  bool asks_keep_alive_ = false;
};

}  // namespace

std::variant<RequestHead, Problem> parse_head(std::string_view text, const HttpLimits& limits) {
  HeadParser parser(limits);
  if (auto problem = parser.parse(text)) return std::move(*problem);
  return parser.take();
}

std::optional<Problem> check_partial_head(std::string_view bytes, std::size_t checked, const HttpLimits& limits) {
  if (bytes.empty()) return std::nullopt;
  if (bytes.front() == kTlsHandshake) return tls_on_plain_port();
  if (!core::is_token(bytes.front())) {
    return malformed("a request begins with its method, not with " + core::quoted(bytes.substr(0, 16)));
  }
  // A method, two spaces and the version.
  const std::size_t longest_line = limits.target_bytes + 32;
  if (bytes.size() > longest_line && bytes.substr(0, longest_line).find(kLineEnd) == std::string_view::npos) {
    return target_too_long(limits);
  }
  if (bytes.size() > limits.head_bytes) return head_too_large(limits);
  // The last byte that was checked may have been a CR.
  for (std::size_t i = checked == 0 ? 0 : checked - 1; i < bytes.size(); ++i) {
    const char c = bytes[i];
    const bool is_bare = (c == '\n' && (i == 0 || bytes[i - 1] != '\r')) ||
                         (c == '\r' && i + 1 < bytes.size() && bytes[i + 1] != '\n') || c == '\0';
    if (is_bare) return malformed("lines end with CR LF, and hold neither of them nor NUL anywhere else");
  }
  return std::nullopt;
}

}  // namespace bide::server
