#include "server/http/request_reader.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <cctype>
#include <chrono>
#include <exception>
#include <utility>
#include <variant>

#include "core/quote.h"
#include "platform/fatal.h"
#include "server/http/chunk_decoder.h"
#include "server/http/content_coding.h"
#include "server/http/head_guard.h"
#include "server/http/target.h"

namespace bide::server {

namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;
using wire::Problem;

// Some clients end a body with a line end that belongs to nothing.
constexpr std::size_t kEmptyLines = 2;

// A body that is compressed is inflated in pieces, since a byte can stand for a thousand: so many of it at once, and after
// so many that came of it others have their turn.
constexpr std::size_t kInflatedAtOnce = 128;
constexpr std::size_t kInflatedATurn = 64 * 1024;

Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return Method::kGet;
    case http::verb::head:
      return Method::kHead;
    case http::verb::post:
      return Method::kPost;
    case http::verb::put:
      return Method::kPut;
    case http::verb::patch:
      return Method::kPatch;
    case http::verb::delete_:
      return Method::kDelete;
    case http::verb::options:
      return Method::kOptions;
    default:
      return Method::kOther;
  }
}

Problem no_memory() {
  return {.status = 503,
          .code = "unavailable",
          .detail = "too many large requests are under way",
          .retry_after = std::chrono::milliseconds(1'000)};
}

Problem too_large(std::uint64_t most) {
  return {.status = 413, .code = "body_too_large", .detail = "a body may have " + std::to_string(most) + " bytes"};
}

}  // namespace

// Beast's parser with places of ours for what it finds. It sees heads only, and only those that the guard let through.
class RequestReader::HeadParser : public http::basic_parser<true> {
 public:
  HeadParser(Request& request, const HttpLimits& limits) : request_(request) {
    header_limit(static_cast<std::uint32_t>(limits.head_bytes));
    body_limit(boost::none);  // Ours counts what was inflated.
  }

  const std::string& target() const { return target_; }
  int version() const { return version_; }

 private:
  void on_request_impl(http::verb verb, string_view, string_view target, int version, error_code&) override {
    request_.method = method_of(verb);
    target_.assign(target.data(), target.size());
    version_ = version;
  }
  void on_field_impl(http::field, string_view name, string_view value, error_code&) override {
    std::string lower(name.data(), name.size());
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto [at, is_new] = request_.fields.try_emplace(std::move(lower), value.data(), value.size());
    if (is_new) return;
    at->second += at->first == "cookie" ? "; " : ", ";
    at->second.append(value.data(), value.size());
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override { return body.size(); }
  void on_finish_impl(error_code&) override {}

  Request& request_;
  std::string target_;
  int version_ = 11;
};

// What comes after the head.
class RequestReader::Body {
 public:
  Body(bool chunked, std::uint64_t length) : chunked_(chunked), left_(length) {}

  void accept(std::uint64_t most, bool gzip, MemoryCharge charge) {
    most_ = most;
    charge_ = std::move(charge);
    if (gzip) gunzip_ = std::make_unique<Gunzip>();
  }
  void drop(std::uint64_t most) {
    most_ = most;
    drops_ = true;
  }
  std::uint64_t received() const { return received_; }
  MemoryCharge& charge() { return charge_; }

  // Consumes from the front of `bytes` what belongs to it.
  Step read(std::string_view& bytes, std::string& out) {
    for (const std::size_t begun = out.size();;) {
      std::string_view part = gunzip_ ? bytes.substr(0, kInflatedAtOnce) : bytes;
      const std::size_t given = part.size();
      const Step step = chunked_ ? read_chunks(part, out) : read_length(part, out);
      bytes.remove_prefix(given - part.size());
      if (step == Step::kWhole && gunzip_ && received_ > 0 && !gunzip_->is_complete()) return refuse(broken_gzip());
      if (step != Step::kMore || bytes.empty()) return step;
      if (out.size() - begun >= kInflatedATurn) return Step::kTurn;
    }
  }
  Problem& problem() { return problem_; }

 private:
  Step refuse(Problem problem) {
    problem_ = std::move(problem);
    return Step::kRefused;
  }
  static Problem broken_gzip() {
    return {.status = 400, .code = "invalid_gzip", .detail = "the body is not what its Content-Encoding says: gzip"};
  }

  Step read_length(std::string_view& bytes, std::string& out) {
    const std::string_view part = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size())));
    bytes.remove_prefix(part.size());
    left_ -= part.size();
    if (!take(part, out)) return Step::kRefused;
    return left_ == 0 ? Step::kWhole : Step::kMore;
  }

  Step read_chunks(std::string_view& bytes, std::string& out) {
    for (;;) {
      std::string_view data;
      switch (chunks_.next(bytes, data)) {
        case ChunkDecoder::Event::kMore:
          return Step::kMore;
        case ChunkDecoder::Event::kSize:
          if (!gunzip_ && chunks_.size() > most_ - std::min(most_, received_)) return refuse(too_large(most_));
          break;
        case ChunkDecoder::Event::kData:
          if (!take(data, out)) return Step::kRefused;
          break;
        case ChunkDecoder::Event::kEnd:
          return Step::kWhole;
        case ChunkDecoder::Event::kMalformed:
          return refuse({.status = 400, .code = "malformed_request", .detail = "the body is not made of chunks"});
        case ChunkDecoder::Event::kTrailers:
          return refuse({.status = 400, .code = "trailers_refused", .detail = "fields after a chunked body are not accepted"});
      }
    }
  }

  bool take(std::string_view part, std::string& out) {
    received_ += part.size();
    if (gunzip_) {
      const Gunzip::Result result = gunzip_->push(part, [&](std::string_view piece) { return append(piece, out); });
      if (result == Gunzip::Result::kBroken) refuse(broken_gzip());
      return result == Gunzip::Result::kOk;
    }
    if (!drops_) return append(part, out);
    if (received_ > most_) refuse(too_large(most_));
    return received_ <= most_;
  }

  // Grows with what has come, never by what was announced alone.
  bool append(std::string_view part, std::string& out) {
    const std::size_t size = out.size() + part.size();
    if (size > most_) {
      refuse(too_large(most_));
      return false;
    }
    if (size > out.capacity()) {
      const std::size_t capacity = std::max(size, static_cast<std::size_t>(std::min<std::uint64_t>(most_, 2 * out.capacity())));
      if (!charge_.set(capacity)) {
        refuse(no_memory());
        return false;
      }
      out.reserve(capacity);
    }
    out.append(part);
    return true;
  }

  const bool chunked_;
  bool drops_ = false;
  std::uint64_t left_;  // Without chunks.
  std::uint64_t most_ = 0;
  std::uint64_t received_ = 0;
  ChunkDecoder chunks_;
  std::unique_ptr<Gunzip> gunzip_;
  MemoryCharge charge_;  // Of what was taken.
  Problem problem_;
};

RequestReader::RequestReader(const HttpLimits& limits) : limits_(limits) {}
RequestReader::~RequestReader() = default;

void RequestReader::keep(std::string_view bytes) {
  rest_.erase(0, std::exchange(used_, 0));
  rest_.append(bytes);
}

RequestReader::Step RequestReader::refuse(Problem problem) {
  problem_ = std::move(problem);
  refused_ = true;
  return Step::kRefused;
}

RequestReader::Step RequestReader::advance(std::string_view bytes) {
  if (refused_) return Step::kRefused;
  // Usually nothing waits, and what came is looked at where it lies.
  const bool is_ours = !rest_.empty();
  if (is_ours && !bytes.empty()) keep(bytes);
  if (is_ours) bytes = std::string_view(rest_).substr(used_);
  Step step = Step::kRefused;
  // Beast is known to throw where it should say no.
  try {
    step = body_ ? read_body(bytes) : begin(bytes);
  } catch (const std::exception& thrown) {
    refuse({.status = 400,
            .code = "malformed_request",
            .detail = "the request cannot be read: " + core::printable(thrown.what())});
  }
  platform::require(step != Step::kMore || !body_ || bytes.empty(), "a body that waits for more has used all that came");
  if (refused_ || bytes.empty()) {
    // An assignment would keep the memory.
    std::string().swap(rest_);
    used_ = 0;
  } else if (is_ours) {
    used_ = rest_.size() - bytes.size();
  } else {
    rest_.assign(bytes);
  }
  return step;
}

RequestReader::Step RequestReader::begin(std::string_view& bytes) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  for (std::size_t lines = 0; lines < kEmptyLines && bytes.starts_with("\r\n"); ++lines) bytes.remove_prefix(2);
  // A line end that is half there is still none.
  if (bytes == "\r") return Step::kMore;
  const std::size_t end = bytes.find(kHeadEnd, seen_ < 3 ? 0 : seen_ - 3);
  if (end == std::string_view::npos) {
    if (auto problem = check_head_so_far(bytes, seen_, limits_)) return refuse(std::move(*problem));
    seen_ = bytes.size();
    return Step::kMore;
  }
  seen_ = 0;
  const std::string_view head = bytes.substr(0, end + kHeadEnd.size());
  bytes.remove_prefix(head.size());
  if (auto problem = check_head(head, limits_)) return refuse(std::move(*problem));

  request_ = {};
  HeadParser parser(request_, limits_);
  error_code ec;
  parser.put(boost::asio::buffer(head.data(), head.size()), ec);
  if (ec || !parser.is_header_done()) {
    return refuse({.status = 400, .code = "malformed_request", .detail = "the request cannot be read: " + ec.message()});
  }
  std::variant<Target, Problem> target = parse_target(parser.target());
  if (auto* problem = std::get_if<Problem>(&target)) return refuse(std::move(*problem));
  request_.path = std::move(std::get<Target>(target).path);
  request_.query = std::move(std::get<Target>(target).query);
  if (std::string& authority = std::get<Target>(target).authority; !authority.empty()) {
    request_.fields["host"] = std::move(authority);
  }
  is_http_1_0_ = parser.version() == 10;
  keep_alive_ = parser.keep_alive();
  content_length_.reset();
  if (const auto length = parser.content_length()) content_length_ = *length;
  has_body_ = parser.chunked() || content_length_.value_or(0) > 0;
  body_ = std::make_unique<Body>(parser.chunked(), content_length_.value_or(0));
  return Step::kHead;
}

RequestReader::Step RequestReader::read_body(std::string_view& bytes) {
  const Step step = body_->read(bytes, request_.body);
  return step == Step::kRefused ? refuse(std::move(body_->problem())) : step;
}

bool RequestReader::wants_continue() const {
  return !is_http_1_0_ && has_body_ && rest_.empty() && is_same_text(request_.field("expect"), "100-continue");
}

void RequestReader::accept_body(std::uint64_t most, bool gzip, MemoryCharge charge) {
  body_->accept(most, gzip, std::move(charge));
}
void RequestReader::drop_body(std::uint64_t most) { body_->drop(most); }

std::uint64_t RequestReader::body_received() const { return body_ ? body_->received() : 0; }

MemoryCharge& RequestReader::charge() { return body_->charge(); }

Request RequestReader::take() {
  body_.reset();
  return std::exchange(request_, {});
}

}  // namespace bide::server
