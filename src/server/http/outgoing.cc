#include "server/http/outgoing.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "server/http/content_coding.h"
#include "server/http/response_text.h"

namespace bide::server {

namespace {

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

void Outgoing::begin(Response response, const AnswerForm& form) {
  const bool has_body = may_have_body(response.status);
  if (!has_body) response.body.clear();
  if (form.method != Method::kHead) compress(response, form.takes_gzip);
  text_ = head_text(response, {.is_http_1_0 = form.is_http_1_0,
                               .keep_alive = form.keep_alive,
                               .length = has_body ? std::optional<std::uint64_t>(response.body.size()) : std::nullopt});
  if (form.method == Method::kHead) response.body.clear();
  if (response.body.size() <= kOneWrite) {
    text_ += response.body;
    body_.clear();
  } else {
    body_ = std::move(response.body);
  }
  at_ = 0;
  written_ = 0;
}

void Outgoing::begin_continue() {
  text_ = "HTTP/1.1 100 Continue\r\n\r\n";
  body_.clear();
  at_ = 0;
  written_ = 0;
}

void Outgoing::begin_stream(const Response& head, const AnswerForm& form) {
  text_ = head_text(head, {.is_http_1_0 = form.is_http_1_0, .keep_alive = form.keep_alive, .chunked = true});
  body_.clear();
  at_ = 0;
  written_ = 0;
  chunked_ = !form.is_http_1_0;
}

void Outgoing::add(std::string bytes, bool is_last) {
  if (chunked_) {
    append_chunk(text_, bytes);
    if (is_last) text_ += kLastChunk;
  } else if (text_.empty()) {
    text_ = std::move(bytes);
  } else {
    text_ += bytes;
  }
}

Transfer Outgoing::write(Channel& channel) {
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

void Outgoing::release() {
  // An assignment would keep the memory for the next time.
  std::string().swap(text_);
  std::string().swap(body_);
  at_ = 0;
}

}  // namespace bide::server
