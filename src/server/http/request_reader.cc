#include "server/http/request_reader.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>
#include <variant>

#include "platform/fatal.h"
#include "server/http/chunk_decoder.h"
#include "server/http/content_coding.h"

namespace bide::server {

namespace {

using wire::Problem;

// Some clients end a body with a line end that belongs to nothing.
constexpr std::size_t kEmptyLines = 2;

// A compressed body is inflated in small pieces, since a byte can stand for a thousand. After so many bytes that came of it
// other connections have their turn: with a few bodies at a time that is less than a millisecond.
constexpr std::size_t kInflatedBeforeYield = 16 * 1024;
// Of what is inflated in one call; the fewer, the more came of them the last time.
constexpr std::size_t kLeastDeflated = 16;
constexpr std::size_t kMostDeflated = 128;

constexpr std::size_t kLargestCopy = 1024 * 1024;

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

// What comes after the head.
class RequestReader::Body {
 public:
  Body(bool chunked, std::uint64_t length) : chunked_(chunked), length_(length), left_(length) {}

  void accept(std::uint64_t most, bool gzip, MemoryCharge charge) {
    most_ = most;
    longest_ = gzip || chunked_ ? most : std::min(most, length_);
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
      std::string_view part = gunzip_ ? bytes.substr(0, deflated_) : bytes;
      const std::size_t given = part.size();
      const std::size_t before = out.size();
      const Step step = chunked_ ? read_chunks(part, out) : read_length(part, out);
      bytes.remove_prefix(given - part.size());
      adapt(out.size() - before);
      if (step == Step::kWhole && gunzip_ && received_ > 0 && !gunzip_->is_complete()) return refuse(broken_gzip());
      if (step != Step::kMore || bytes.empty()) return step;
      if (out.size() - begun >= kInflatedBeforeYield) return Step::kYield;
    }
  }
  Problem& problem() { return problem_; }

 private:
  void adapt(std::size_t inflated) {
    if (inflated > kInflatedBeforeYield) deflated_ = std::max(kLeastDeflated, deflated_ / 2);
    if (inflated < kInflatedBeforeYield / 4) deflated_ = std::min(kMostDeflated, deflated_ * 2);
  }

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
    if (size > granted_) {
      const std::size_t granted = std::max(size, static_cast<std::size_t>(std::min<std::uint64_t>(most_, 2 * granted_)));
      if (!charge_.set(granted)) {
        refuse(no_memory());
        return false;
      }
      granted_ = granted;
      if (granted_ > out.capacity()) grow(out);
    }
    out.append(part);
    return true;
  }

  // A small buffer doubles. To copy one of tens of MB takes as many ms, in which no other connection of the thread goes on: so
  // beyond kLargestCopy all that the body can come to is reserved at once. Pages that were never written take no memory, and
  // what is written was charged.
  void grow(std::string& out) const {
    try {
      out.reserve(granted_ <= kLargestCopy ? granted_ : longest_);
    } catch (const std::bad_alloc&) {
      out.reserve(granted_);  // The system counts what is reserved, too.
    }
  }

  const bool chunked_;
  const std::uint64_t length_;  // Without chunks.
  bool drops_ = false;
  std::uint64_t left_;          // Likewise.
  std::uint64_t most_ = 0;
  std::uint64_t longest_ = 0;   // That it can come to.
  std::size_t granted_ = 0;     // Bytes that were charged.
  std::size_t deflated_ = kMostDeflated;  // Bytes to inflate in the next call.
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
  const Step step = body_ ? read_body(bytes) : begin(bytes);
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
  const std::size_t end = bytes.find(kHeadEnd, checked_ < 3 ? 0 : checked_ - 3);
  if (end == std::string_view::npos) {
    if (auto problem = check_partial_head(bytes, checked_, limits_)) return refuse(std::move(*problem));
    checked_ = bytes.size();
    return Step::kMore;
  }
  checked_ = 0;
  const std::string_view head = bytes.substr(0, end + kHeadEnd.size());
  bytes.remove_prefix(head.size());
  std::variant<RequestHead, Problem> parsed = parse_head(head, limits_);
  if (auto* problem = std::get_if<Problem>(&parsed)) return refuse(std::move(*problem));
  head_ = std::move(std::get<RequestHead>(parsed));
  body_ = std::make_unique<Body>(head_.is_chunked, head_.content_length.value_or(0));
  return Step::kHead;
}

RequestReader::Step RequestReader::read_body(std::string_view& bytes) {
  const Step step = body_->read(bytes, head_.request.body);
  return step == Step::kRefused ? refuse(std::move(body_->problem())) : step;
}

bool RequestReader::wants_continue() const {
  return !head_.is_http_1_0 && head_.has_body() && rest_.empty() &&
         is_same_text(head_.request.field("expect"), "100-continue");
}

void RequestReader::accept_body(std::uint64_t most, bool gzip, MemoryCharge charge) {
  body_->accept(most, gzip, std::move(charge));
}
void RequestReader::drop_body(std::uint64_t most) { body_->drop(most); }

std::uint64_t RequestReader::body_received() const { return body_ ? body_->received() : 0; }

MemoryCharge& RequestReader::charge() { return body_->charge(); }

Request RequestReader::take() {
  body_.reset();
  return std::exchange(head_.request, {});
}

}  // namespace bide::server
