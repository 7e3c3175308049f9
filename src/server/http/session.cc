#include "server/http/session.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <exception>
#include <limits>
#include <utility>

#include "core/quote.h"
#include "server/http/content_coding.h"
#include "server/http/problem_response.h"
#include "server/http/response_text.h"

namespace bide::server {

namespace {

using Clock = std::chrono::steady_clock;
using boost::system::error_code;
using std::chrono::milliseconds;
using wire::Problem;

constexpr std::size_t kScratchBytes = 64 * 1024;
// Bytes of later requests that are taken in while one is answered.
constexpr std::size_t kMostAhead = 32 * 1024;
// A body that nobody wants is read up to here, so that the connection can go on.
constexpr std::uint64_t kMostDropped = 64 * 1024;
// After the last answer we read on for a while: a connection that is closed with bytes unread takes the answer with it.
constexpr milliseconds kLinger{2'000};
constexpr std::uint64_t kMostLingered = 16 * 1024 * 1024;
constexpr std::size_t kOneWrite = 16 * 1024;
// Less is not worth it; more would keep everybody else waiting.
constexpr std::size_t kLeastZipped = 1024;
constexpr std::size_t kMostZipped = 1024 * 1024;
// In a row, before others have their turn.
constexpr int kMostSteps = 256;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Read into before anybody knows for whom; one for each thread, not for each connection.
char* scratch() {
  thread_local const std::unique_ptr<char[]> bytes(new char[kScratchBytes]);
  return bytes.get();
}

// An assignment would keep the memory for the next time.
void release(std::string& text) { std::string().swap(text); }

}  // namespace

// What is known of a request from its head until its answer is out.
struct Session::Current {
  const Route* route = nullptr;
  std::shared_ptr<Exchange> exchange = {};
  std::optional<Response> early = {};  // The answer, known before the body came.
  Clock::time_point body_since = Clock::now();
  Clock::time_point whole_at = Clock::now();
  Clock::time_point write_since = {};
  std::uint64_t written = 0;
  int status = 0;
  Method method = Method::kOther;
  bool is_http_1_0 = false;
  bool keep_alive = false;
  bool takes_gzip = false;
  bool stream_ended = false;
};

Session::Session(Socket socket, std::unique_ptr<Channel> channel, std::string peer, std::shared_ptr<Service> service)
    : service_(std::move(service)),
      peer_(std::move(peer)),
      socket_(std::move(socket)),
      channel_(std::move(channel)),
      deadline_(kNever) {}

Session::~Session() {
  service_->connections.remove(*this);
  service_->held_bytes -= held_;
}

void Session::start() {
  service_->connections.add(*this);
  set_deadline(service_->limits.head_timeout);
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->pump(); });
}

void Session::drain() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kReading && !self->reader_ && !self->current_) return self->close();
    if (self->state_ != State::kStreaming) return;
    self->current_->exchange->client_is_gone();
    self->current_->stream_ended = true;
    self->close_after_ = true;
    if (!self->current_->is_http_1_0) self->out_ += kLastChunk;
    self->pump();
  });
}

void Session::abort() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Session::give_up_overdue() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->on_deadline(); });
}

void Session::on_deadline() {
  if (state_ == State::kClosed || !is_overdue(Clock::now())) return;
  const bool in_request = state_ == State::kReading && (reader_ || current_);
  if (!in_request) {
    // What the kernel still holds for somebody who does not read is dropped, too.
    error_code ignored;
    const bool is_stuck = state_ == State::kWriting || state_ == State::kStreaming;
    if (is_stuck) socket_.set_option(boost::asio::socket_base::linger(true, 0), ignored);
    return close();
  }
  refuse({.status = 408, .code = "request_timeout", .detail = "the request did not arrive in time"});
  pump();
}

void Session::set_deadline(milliseconds from_now) { deadline_ = (Clock::now() + from_now).time_since_epoch().count(); }

void Session::set_transfer_deadline(Clock::time_point since, std::uint64_t bytes) {
  const HttpLimits& limits = service_->limits;
  const auto earned = milliseconds(bytes * 1000 / limits.slowest_rate);
  deadline_ = (since + limits.transfer_timeout + earned).time_since_epoch().count();
}

void Session::no_deadline() { deadline_ = kNever; }

void Session::pump() {
  try {
    for (int steps = 0; steps < kMostSteps; ++steps) {
      if (!step()) return;
    }
  } catch (const std::exception& thrown) {
    // Memory, most likely: this connection's share of it comes free.
    if (service_->on_problem) service_->on_problem("a connection was given up: " + core::printable(thrown.what()));
    return close();
  }
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->pump(); });
}

bool Session::step() {
  switch (state_) {
    case State::kHandshake:
      return shake_hands();
    case State::kReading:
      return read();
    case State::kAnswering:
      return await_answer();
    case State::kWriting:
      return write();
    case State::kStreaming:
      return write_stream();
    case State::kLingering:
      return linger();
    case State::kClosed:
      break;
  }
  return false;
}

bool Session::shake_hands() {
  switch (channel_->handshake().state) {
    case Transfer::State::kDone:
      state_ = State::kReading;
      set_deadline(service_->limits.idle_timeout);
      return true;
    case Transfer::State::kWantsRead:
      watch_read();
      return false;
    case Transfer::State::kWantsWrite:
      watch_write();
      return false;
    default:
      ++service_->refused;
      close();
      return false;
  }
}

bool Session::read() {
  if (reader_) {
    switch (reader_->advance()) {
      case RequestReader::Step::kHead:
        on_head();
        return true;
      case RequestReader::Step::kWhole:
        dispatch();
        return true;
      case RequestReader::Step::kRefused:
        refuse(reader_->problem());
        return true;
      case RequestReader::Step::kMore:
        break;
    }
    if (current_) {
      set_transfer_deadline(current_->body_since, reader_->body_received());
      if (!hold(reader_->request().body.capacity())) {
        refuse({.status = 503,
                .code = "unavailable",
                .detail = "too many large requests are under way",
                .retry_after = milliseconds(1'000)});
        return true;
      }
    } else if (!reader_->is_busy()) {
      reader_.reset();
    }
  }
  return receive();
}

bool Session::receive() {
  if (!readable_ && !channel_->has_buffered()) {
    const bool is_idle = !reader_ && !current_;
    if (ended_ || (is_idle && service_->draining)) {
      close();
    } else {
      watch_read();
    }
    return false;
  }
  const Transfer got = channel_->read(scratch(), kScratchBytes);
  readable_ = got.may_be_more;
  switch (got.state) {
    case Transfer::State::kDone:
      if (!reader_) {
        reader_ = std::make_unique<RequestReader>(service_->limits);
        set_deadline(service_->limits.head_timeout);
      }
      reader_->feed({scratch(), got.bytes});
      return true;
    case Transfer::State::kWantsRead:
      watch_read();
      return false;
    case Transfer::State::kWantsWrite:
      watch_write();
      return false;
    default:
      // In the middle of a request: nobody is there to be told.
      close();
      return false;
  }
}

bool Session::hold(std::uint64_t bytes) {
  const std::uint64_t before = std::exchange(held_, bytes);
  const std::uint64_t all = service_->held_bytes += bytes - before;  // Both wrap around alike.
  return bytes <= before || all <= service_->limits.held_bytes;
}

void Session::on_head() {
  Request& request = reader_->request();
  request.peer = peer_;
  current_ = std::make_unique<Current>();
  current_->method = request.method;
  current_->is_http_1_0 = reader_->is_http_1_0();
  current_->keep_alive = reader_->keep_alive();
  current_->takes_gzip = accepts_gzip(request.field("accept-encoding"));

  const std::uint64_t most = service_->limits.body_bytes;
  const std::uint64_t announced = reader_->content_length().value_or(0);
  if (announced > most) {
    return refuse({.status = 413,
                   .code = "body_too_large",
                   .detail = "the body has " + std::to_string(announced) + " bytes, " + std::to_string(most) +
                             " are allowed"});
  }
  current_->early = judge(request);
  if (current_->early) {
    const bool is_short = reader_->content_length() && announced <= kMostDropped && !reader_->wants_continue();
    if (!reader_->has_body() || is_short) return reader_->drop_body(kMostDropped);
    current_->keep_alive = false;
    reader_.reset();
    return answer(std::move(*current_->early));
  }
  reader_->accept_body(most, !request.field("content-encoding").empty());
  if (reader_->wants_continue()) {
    // A connection that cannot take 25 bytes is not worth more: then the client goes on by itself, or not at all.
    [[maybe_unused]] const Transfer sent = channel_->write("HTTP/1.1 100 Continue\r\n\r\n", false);
  }
}

std::optional<Response> Session::judge(Request& request) {
  Router::Match match = service_->router.find(request.method, request.path);
  if (match.route == nullptr) {
    if (request.method == Method::kOptions && !match.allow.empty()) {
      return Response{.status = 204, .fields = {{"Allow", match.allow}}};
    }
    Response response = to_response(match.problem);
    if (match.problem.status == 405) response.fields.emplace_back("Allow", match.allow);
    return response;
  }
  const Route& route = *match.route;
  current_->route = &route;
  const bool is_open = route.scope == Scope::kNone && (route.method == Method::kGet || route.method == Method::kHead);
  if (!is_open) {
    if (const auto problem = service_->browsers.check(request)) return to_response(*problem);
  }
  request.captured = std::move(match.captured);
  if (service_->admit) {
    auto admitted = service_->admit(request, route.scope);
    if (const Problem* problem = std::get_if<Problem>(&admitted)) return to_response(*problem);
    request.caller = std::move(std::get<Identity>(admitted));
  } else {
    request.caller = {.name = "local", .scopes = 0xff};
  }
  if (const std::string_view expected = request.field("expect"); !expected.empty() && expected != "100-continue") {
    return to_response({.status = 417,
                        .code = "expectation_failed",
                        .detail = "Expect: " + core::quoted(expected) + " is not known, only 100-continue"});
  }
  const std::string_view coding = request.field("content-encoding");
  if (coding == "identity") request.fields.erase("content-encoding");
  if (!coding.empty() && coding != "gzip" && coding != "x-gzip" && coding != "identity") {
    Response response = to_response({.status = 415,
                                     .code = "unsupported_media_type",
                                     .detail = "the Content-Encoding " + core::quoted(coding) + " is not gzip"});
    response.fields.emplace_back("Accept-Encoding", "gzip");
    return response;
  }
  return std::nullopt;
}

void Session::dispatch() {
  current_->whole_at = Clock::now();
  Request request = reader_->take();
  if (!reader_->is_busy()) reader_.reset();
  if (current_->early) return answer(std::move(*current_->early));
  hold(request.body.capacity());
  current_->exchange = std::make_shared<Exchange>(
      [self = shared_from_this()] {
        boost::asio::post(self->socket_.get_executor(), [self] { self->pump(); });
      },
      service_->limits.stream_bytes);
  state_ = State::kAnswering;
  no_deadline();
  std::string thrown;
  try {
    // Without an answer the reply gives one itself when it is destroyed, so also when this throws.
    current_->route->answer(std::move(request), Reply(current_->exchange));
    return;
  } catch (const std::exception& exception) {
    thrown = exception.what();
  } catch (...) {
    thrown = "something that is not a std::exception";
  }
  if (service_->on_problem) {
    service_->on_problem("the route " + std::string(to_string(current_->route->method)) + " " +
                         std::string(current_->route->pattern) + " threw: " + core::printable(thrown));
  }
}

bool Session::await_answer() {
  std::optional<Exchange::Answer> given = current_->exchange->take_answer();
  if (!given) {
    watch_for_end();
    return false;
  }
  if (given->is_stream && current_->method != Method::kHead) {
    begin_stream(std::move(given->response));
  } else {
    if (given->is_stream) current_->exchange->client_is_gone();
    answer(std::move(given->response));
  }
  return true;
}

void Session::answer(Response response) {
  ++service_->requests;
  const bool keep = current_->keep_alive && !service_->draining && (!ended_ || reader_);
  close_after_ = !keep;
  std::string& body = response.body;
  const bool has_body = may_have_body(response.status);
  if (!has_body) body.clear();
  if (is_compressible(response.content_type) && body.size() >= kLeastZipped && body.size() <= kMostZipped &&
      current_->method != Method::kHead) {
    response.fields.emplace_back("Vary", "Accept-Encoding");
    const bool is_coded = std::any_of(response.fields.begin(), response.fields.end(),
                                      [](const auto& field) { return field.first == "Content-Encoding"; });
    if (current_->takes_gzip && !is_coded) {
      body = gzip(body);
      response.fields.emplace_back("Content-Encoding", "gzip");
    }
  }
  current_->status = response.status;
  out_ = head_text(response, {.is_http_1_0 = current_->is_http_1_0,
                              .keep_alive = keep,
                              .length = has_body ? std::optional<std::uint64_t>(body.size()) : std::nullopt});
  if (current_->method == Method::kHead) body.clear();
  if (body.size() <= kOneWrite) {
    out_ += body;
  } else {
    out_body_ = std::move(body);
  }
  hold(out_.size() + out_body_.size());
  written_ = 0;
  current_->write_since = Clock::now();
  state_ = State::kWriting;
}

void Session::refuse(const Problem& problem) {
  ++service_->refused;
  Response response = to_response(problem);
  // Whatever follows cannot be told apart from the request that was refused.
  if (!current_) current_ = std::make_unique<Current>();
  current_->keep_alive = false;
  reader_.reset();
  answer(std::move(response));
}

bool Session::write() {
  for (;;) {
    if (written_ == out_.size()) {
      if (out_body_.empty()) break;
      out_ = std::exchange(out_body_, {});
      written_ = 0;
    }
    const Transfer sent = channel_->write(std::string_view(out_).substr(written_), !out_body_.empty());
    switch (sent.state) {
      case Transfer::State::kDone:
        written_ += sent.bytes;
        current_->written += sent.bytes;
        break;
      case Transfer::State::kWantsWrite:
        set_transfer_deadline(current_->write_since, current_->written);
        watch_write();
        return false;
      case Transfer::State::kWantsRead:
        set_transfer_deadline(current_->write_since, current_->written);
        watch_read();
        return false;
      default:
        close();
        return false;
    }
  }
  finish_answer();
  return true;
}

void Session::begin_stream(Response response) {
  ++service_->requests;
  const bool keep = current_->keep_alive && !service_->draining && !current_->is_http_1_0;
  close_after_ = !keep;
  current_->status = response.status;
  out_ = head_text(response, {.is_http_1_0 = current_->is_http_1_0, .keep_alive = keep, .chunked = true});
  written_ = 0;
  hold(0);
  state_ = State::kStreaming;
}

bool Session::write_stream() {
  while (written_ < out_.size()) {
    const Transfer sent = channel_->write(std::string_view(out_).substr(written_), false);
    if (sent.state == Transfer::State::kDone) {
      written_ += sent.bytes;
      continue;
    }
    if (sent.state != Transfer::State::kWantsWrite) {
      close();
    } else if (!watches_write_) {
      // Not again while we wait: somebody else's bytes do not make this client read.
      set_deadline(service_->limits.transfer_timeout);
      watch_write();
    }
    return false;
  }
  out_.clear();
  written_ = 0;
  if (current_->stream_ended) {
    finish_answer();
    return true;
  }
  Exchange::Part part = current_->exchange->take_part();
  if (part.overflowed) {
    close();
    return false;
  }
  if (current_->is_http_1_0) {
    out_ = std::move(part.bytes);
  } else {
    append_chunk(out_, part.bytes);
    if (part.ended) out_ += kLastChunk;
  }
  current_->stream_ended = part.ended;
  if (out_.empty() && !part.ended) {
    out_.shrink_to_fit();
    no_deadline();
    watch_for_end();
    return false;
  }
  return true;
}

void Session::finish_answer() {
  if (service_->on_served) {
    service_->on_served({.method = current_->method,
                         .pattern = current_->route == nullptr ? std::string_view() : current_->route->pattern,
                         .status = current_->status,
                         .duration = Clock::now() - current_->whole_at,
                         .peer = peer_});
  }
  current_.reset();
  release(out_);
  release(out_body_);
  hold(0);
  if (!close_after_) {
    state_ = State::kReading;
    if (service_->draining && !reader_) return close();
    set_deadline(reader_ ? service_->limits.head_timeout : service_->limits.idle_timeout);
    return;
  }
  if (ended_) return close();
  channel_->end();
  state_ = State::kLingering;
  readable_ = true;
  set_deadline(kLinger);
}

bool Session::linger() {
  const Transfer got = channel_->read(scratch(), kScratchBytes);
  lingered_ += got.bytes;
  if (got.state == Transfer::State::kWantsRead) {
    watch_read();
    return false;
  }
  if (got.state == Transfer::State::kDone && lingered_ <= kMostLingered) return true;
  close();
  return false;
}

// While an answer is awaited or streamed: takes in early requests, and notices when nobody waits any more.
void Session::look_ahead() {
  const Transfer got = channel_->read(scratch(), kScratchBytes);
  readable_ = got.may_be_more;
  switch (got.state) {
    case Transfer::State::kDone:
      if (!reader_) reader_ = std::make_unique<RequestReader>(service_->limits);
      reader_->keep({scratch(), got.bytes});
      return;
    case Transfer::State::kWantsRead:
    case Transfer::State::kWantsWrite:
      return;
    case Transfer::State::kFailed:
      return close();
    case Transfer::State::kEnded:
      ended_ = true;
      // Whoever only stopped writing may still have an answer; but nobody holds anything back for it.
      if (state_ == State::kStreaming) return close();
      current_->exchange->client_is_gone();
      return;
  }
}

// Only to learn that the client is gone; what it sends meanwhile is taken in up to a limit.
void Session::watch_for_end() {
  if (!ended_ && (!reader_ || reader_->waiting_bytes() < kMostAhead)) watch_read();
}

void Session::watch_read() {
  if (std::exchange(watches_read_, true)) return;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](error_code) { self->on_ready(true); });
}

void Session::watch_write() {
  if (std::exchange(watches_write_, true)) return;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](error_code) { self->on_ready(false); });
}

// An error is found by whoever reads or writes next.
void Session::on_ready(bool readable) {
  (readable ? watches_read_ : watches_write_) = false;
  if (state_ == State::kClosed) return;
  if (readable) {
    readable_ = true;
    if (state_ == State::kAnswering || state_ == State::kStreaming) look_ahead();
  }
  pump();
}

void Session::close() {
  if (closed_.exchange(true)) return;
  state_ = State::kClosed;
  if (current_ && current_->exchange) current_->exchange->detach();
  current_.reset();
  reader_.reset();
  channel_.reset();
  error_code ignored;
  socket_.close(ignored);
  release(out_);
  release(out_body_);
  hold(0);
  service_->connections.remove(*this);
}

}  // namespace bide::server
