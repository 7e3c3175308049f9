#include "server/http/response_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <string_view>
#include <utility>

#include "server/http/content_coding.h"

namespace bide::server {

namespace {

struct Reason {
  int status;
  std::string_view text;
};

constexpr std::array kReasons = std::to_array<Reason>({
    {100, "Continue"},           {200, "OK"},
    {201, "Created"},            {202, "Accepted"},
    {204, "No Content"},         {207, "Multi-Status"},
    {206, "Partial Content"},    {301, "Moved Permanently"},
    {302, "Found"},              {303, "See Other"},
    {304, "Not Modified"},       {307, "Temporary Redirect"},
    {308, "Permanent Redirect"}, {400, "Bad Request"},
    {401, "Unauthorized"},       {403, "Forbidden"},
    {404, "Not Found"},          {405, "Method Not Allowed"},
    {406, "Not Acceptable"},     {408, "Request Timeout"},
    {409, "Conflict"},           {410, "Gone"},
    {411, "Length Required"},    {412, "Precondition Failed"},
    {413, "Content Too Large"},  {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"}, {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {424, "Failed Dependency"},  {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},  {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
});

std::string_view reason_of(int status) {
  const auto found = std::find_if(kReasons.begin(), kReasons.end(), [&](const Reason& r) { return r.status == status; });
  return found == kReasons.end() ? std::string_view("Unknown") : found->text;
}

bool may_have_body(int status) { return status >= 200 && status != 204 && status != 304; }

// "Sun, 15 Nov 2026 23:42:06 GMT"; made once a second.
std::string_view date_text() {
  thread_local std::time_t made_at = 0;
  thread_local std::string text;
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (now == made_at) return text;
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char buffer[40];
  // The C locale: nothing here ever sets another.
  text.assign(buffer, std::strftime(buffer, sizeof buffer, "%a, %d %b %Y %H:%M:%S GMT", &parts));
  made_at = now;
  return text;
}

bool has(const Response& response, std::string_view name) {
  return std::any_of(response.fields.begin(), response.fields.end(),
                     [&](const auto& field) { return is_same_text(field.first, name); });
}

void append(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

template <class Number>
void append_number(std::string& out, Number number, int radix) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number, radix).ptr);
}

// A body up to here is copied behind its head, so that one call sends both.
constexpr std::size_t kOneWrite = 16 * 1024;
// Less is not worth it; more would keep everybody else waiting.
constexpr std::size_t kLeastZipped = 1024;
constexpr std::size_t kMostZipped = 1024 * 1024;

void compress(Response& response, bool client_takes_it) {
  const std::size_t size = response.body.size();
  if (!is_compressible(response.content_type) || size < kLeastZipped || size > kMostZipped) return;
  response.fields.emplace_back("Vary", "Accept-Encoding");
  const bool is_coded = std::any_of(response.fields.begin(), response.fields.end(),
                                    [](const auto& field) { return field.first == "Content-Encoding"; });
  if (!client_takes_it || is_coded) return;
  response.body = gzip(response.body);
  response.fields.emplace_back("Content-Encoding", "gzip");
}

}  // namespace

std::string head_text(const Response& response, const Framing& framing) {
  std::string out;
  out.reserve(512);
  out += framing.is_http_1_0 ? "HTTP/1.0 " : "HTTP/1.1 ";
  append_number(out, response.status, 10);
  out.append(" ").append(reason_of(response.status)).append("\r\n");
  append(out, "Date", date_text());
  if (!response.content_type.empty()) append(out, "Content-Type", response.content_type);
  if (framing.chunked && !framing.is_http_1_0) append(out, "Transfer-Encoding", "chunked");
  if (framing.length) {
    out += "Content-Length: ";
    append_number(out, *framing.length, 10);
    out += "\r\n";
  }
  if (!framing.keep_alive) {
    append(out, "Connection", "close");
  } else if (framing.is_http_1_0) {
    append(out, "Connection", "keep-alive");
  }
  for (const auto& [name, value] : response.fields) {
    constexpr std::string_view kLineEnds("\r\n\0", 3);
    if (name.find_first_of(kLineEnds) == std::string::npos && value.find_first_of(kLineEnds) == std::string::npos) {
      append(out, name, value);
    }
  }
  // What is told is told to this caller, now, as the type that it says.
  if (!has(response, "Cache-Control")) append(out, "Cache-Control", "no-store");
  append(out, "X-Content-Type-Options", "nosniff");
  if (!has(response, "Content-Security-Policy")) {
    append(out, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  }
  return out += "\r\n";
}

void append_chunk(std::string& out, std::string_view bytes) {
  if (bytes.empty()) return;  // It would be the end.
  append_number(out, bytes.size(), 16);
  out.append("\r\n").append(bytes).append("\r\n");
}

void ResponseWriter::start(std::string text) {
  text_ = std::move(text);
  body_.clear();
  at_ = 0;
  written_ = 0;
}

void ResponseWriter::begin(Response response, const ResponseForm& form) {
  const bool has_body = may_have_body(response.status);
  if (!has_body) response.body.clear();
  if (form.method != Method::kHead) compress(response, form.takes_gzip);
  start(head_text(response, {.is_http_1_0 = form.is_http_1_0,
                             .keep_alive = form.keep_alive,
                             .length = has_body ? std::optional<std::uint64_t>(response.body.size()) : std::nullopt}));
  if (form.method == Method::kHead) return;
  if (response.body.size() <= kOneWrite) {
    text_ += response.body;
  } else {
    body_ = std::move(response.body);
  }
}

void ResponseWriter::begin_continue() {
  start("HTTP/1.1 100 Continue\r\n\r\n");
}

void ResponseWriter::begin_stream(const Response& head, const ResponseForm& form) {
  start(head_text(head, {.is_http_1_0 = form.is_http_1_0, .keep_alive = form.keep_alive, .chunked = true}));
  chunked_ = !form.is_http_1_0;
}

void ResponseWriter::add(std::string bytes, bool is_last) {
  if (chunked_) {
    append_chunk(text_, bytes);
    if (is_last) text_ += kLastChunk;
  } else if (text_.empty()) {
    text_ = std::move(bytes);
  } else {
    text_ += bytes;
  }
}

Transfer ResponseWriter::write(Channel& channel) {
  for (;;) {
    if (at_ == text_.size()) {
      text_.clear();
      at_ = 0;
      if (body_.empty()) return {.state = Transfer::State::kDone};
      text_ = std::exchange(body_, {});
    }
    const Transfer sent = channel.write(std::string_view(text_).substr(at_), !body_.empty());
    if (sent.state != Transfer::State::kDone) return sent;
    at_ += sent.bytes;
    written_ += sent.bytes;
  }
}

void ResponseWriter::release() {
  // An assignment would keep the memory for the next time.
  std::string().swap(text_);
  std::string().swap(body_);
  at_ = 0;
}

}  // namespace bide::server
