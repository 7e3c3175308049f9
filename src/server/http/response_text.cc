#include "server/http/response_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cctype>
#include <ctime>
#include <utility>

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

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

bool has(const Response& response, std::string_view name) {
  return std::any_of(response.fields.begin(), response.fields.end(),
                     [&](const auto& field) { return same_name(field.first, name); });
}

void append(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

template <class Number>
void append_number(std::string& out, Number number, int radix) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number, radix).ptr);
}

}  // namespace

std::string_view reason_of(int status) {
  const auto found = std::find_if(kReasons.begin(), kReasons.end(), [&](const Reason& r) { return r.status == status; });
  return found == kReasons.end() ? std::string_view("Unknown") : found->text;
}

bool may_have_body(int status) { return status >= 200 && status != 204 && status != 304; }

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

}  // namespace bide::server
