// Outgoing: one answer on its way to the client, whole or as a stream, from a Response to the bytes that the socket has
// taken.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/http/channel.h"
#include "server/http/request.h"
#include "server/http/response.h"

namespace bide::server {

// What the form of an answer depends on, besides the answer.
struct AnswerForm {
  Method method = Method::kGet;
  bool is_http_1_0 = false;
  bool keep_alive = true;
  bool takes_gzip = false;
};

class Outgoing {
 public:
  // Compressed, where that is worth it and the client takes it.
  void begin(Response response, const AnswerForm& form);

  // The interim answer 100, before the one to the request.
  void begin_continue();

  void begin_stream(const Response& head, const AnswerForm& form);
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
  std::string text_;  // Being written, from `at_` on; then the body.
  std::string body_;
  std::size_t at_ = 0;
  std::uint64_t written_ = 0;
  bool chunked_ = false;
};

}  // namespace bide::server
