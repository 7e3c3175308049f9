// ResponseWriter: one answer on its way to the client, whole or as a stream, from a Response to the bytes that the socket has
// taken. Before it the parts of which its bytes are made.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/channel.h"
#include "server/http/request.h"
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

// One chunk of a chunked body.
void append_chunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// How an answer is written depends on the request, too.
struct ResponseForm {
  Method method = Method::kGet;
  bool is_http_1_0 = false;
  bool keep_alive = true;
  bool takes_gzip = false;
};

class ResponseWriter {
 public:
  // Compressed, where that is worth it and the client takes it.
  void begin(Response response, const ResponseForm& form);

  // The interim answer 100, before the one to the request.
  void begin_continue();

  void begin_stream(const Response& head, const ResponseForm& form);
  // To a stream. After the last there must be no more.
  void add(std::string bytes, bool is_last);

  // kDone: everything is out. Otherwise what the channel waits for, or that it is over.
  Transfer write(Channel& channel);

  std::size_t bytes() const { return text_.size() + body_.size(); }  // In memory.
  bool is_empty() const { return text_.empty(); }
  std::uint64_t written() const { return written_; }  // Since the beginning.
  // Between two answers, and while a stream has nothing to say: gives back its memory.
  void release();

 private:
  void start(std::string text);

  std::string text_;  // Being written, from `at_` on; then the body.
  std::string body_;
  std::size_t at_ = 0;
  std::uint64_t written_ = 0;
  bool chunked_ = false;
};

}  // namespace bide::server
