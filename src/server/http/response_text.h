// A response as bytes: the status line and the fields that every answer has, besides its own.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/response.h"

namespace bide::server {

struct Framing {
  bool is_http_1_0 = false;
  bool keep_alive = true;
  bool chunked = false;                       // A stream; over HTTP/1.0 it ends with the connection.
  std::optional<std::uint64_t> length = {};   // Of the body. Nothing: there is none to speak of, as with 204.
};

// Up to and with the empty line. Fields with line ends in them are left out.
std::string head_text(const Response& response, const Framing& framing);

std::string_view reason_of(int status);
bool may_have_body(int status);

// One chunk of a chunked body.
void append_chunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace bide::server
