#include "server/http/session.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "core/quote.h"
#include "platform/local_socket.h"
#include "server/http/content_coding.h"
#include "server/http/service.h"

namespace bide::server {

namespace {

using Clock = std::chrono::steady_clock;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kScratchBytes = 64 * 1024;
// Bytes of later requests that are taken in while one is answered, besides those that came with it.
constexpr std::size_t kMaxPipelined = 32 * 1024;
// A body that nobody wants is read up to here, so that the connection can go on.
constexpr std::uint64_t kMostDropped = 64 * 1024;
// And so much after the last answer.
constexpr std::uint64_t kMostLingered = 16 * 1024 * 1024;
// In a row, before other connections of this thread have their turn; so many bytes as well.
constexpr int kMostSteps = 256;
constexpr std::size_t kMostReadBeforeYield = 512 * 1024;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Read into before anybody knows for whom; one for each thread, not for each connection. Nothing of it is looked at after
// the function that read into it returns: the next connection on this thread uses it, too.
char* scratch() {
  thread_local const std::unique_ptr<char[]> bytes(new char[kScratchBytes]);
  return bytes.get();
}

}  // namespace

Session::Session(Socket socket, std::unique_ptr<Channel> channel, std::string peer, std::shared_ptr<Service> service)
    : service_(std::move(service)),
      number_(++service_->last_connection),
      peer_(std::move(peer)),
      socket_(std::move(socket)),
      channel_(std::move(channel)),
      deadline_(kNever),
      turn_(Clock::now().time_since_epoch().count()) {}

Session::~Session() { service_->connections.remove(*this); }

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
    self->close_after_ = true;
    if (!std::exchange(self->current_->stream_ended, true)) self->out_.add("", true);
    self->pump();
  });
}

void Session::abort() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Session::give_up_overdue() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->on_deadline(); });
}

void Session::revalidate_caller() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (!self->current_ || !self->current_->caller.has_token || self->service_->revalidation.is_still_valid(self->current_->caller)) return;
    if (self->state_ == State::kStreaming || self->state_ == State::kContinuing) return self->close();
    const auto revoked = [] { return wire::make_problem("unauthorized", "the token was revoked, changed or has expired"); };
    if (self->state_ == State::kReading) {  // A body that is not here yet: nothing was done with it.
      self->refuse(revoked());
      return self->pump();
    }
    const Route* const route = self->current_->route;
    if (self->state_ != State::kAnswering || (!route->only_waits && route->method != Method::kGet)) return;
    self->current_->exchange->detach();
    self->current_->keep_alive = false;
    self->answer(to_response(revoked()));
    self->pump();
  });
}

void Session::on_deadline() {
  if (state_ == State::kClosed || !is_overdue(Clock::now())) return;
  const bool in_request = state_ == State::kReading && (reader_ || current_);
  if (!in_request) return reset_connection();
  refuse({.status = 408, .code = "request_timeout", .detail = "the request did not arrive in time"});
  pump();
}

void Session::reset_connection() {
  // A zero linger time: what the kernel still holds for a client that does not read is dropped, too.
  error_code ignored;
  const bool is_stuck = state_ == State::kContinuing || state_ == State::kWriting || state_ == State::kStreaming;
  if (is_stuck) socket_.set_option(boost::asio::socket_base::linger(true, 0), ignored);
  close();
}

bool Session::Waiting::is_lagging(Clock::time_point now, const HttpLimits& limits) const {
  if (now - last >= limits.stalled_after) return true;
  const auto age = std::chrono::duration_cast<milliseconds>(now - began);
  const auto due = static_cast<std::uint64_t>(std::max<std::int64_t>(0, age.count())) * limits.prompt_rate / 1000;
  return age >= limits.stalled_after && transferred < due;
}

void Session::note_progress(const MemoryCharge& charge, Clock::time_point began, std::uint64_t transferred) {
  if (charge.bytes() == 0) return;
  const std::lock_guard lock(waiting_mutex_);
  waiting_.last = Clock::now();
  waiting_.began = began;
  waiting_.transferred = transferred;
  waiting_.share = charge.share();
  waiting_.charge = &charge;
  waiting_.bytes = charge.bytes();
}

void Session::end_wait() {
  if (waiting_.bytes == 0) return;
  const std::lock_guard lock(waiting_mutex_);
  waiting_.bytes = 0;
  waiting_.charge = nullptr;
}

Session::Waiting Session::waiting() const {
  const std::lock_guard lock(waiting_mutex_);
  Waiting seen = waiting_;
  seen.turn = Clock::time_point(Clock::duration(turn_.load()));
  return seen;
}

void Session::begin_turn() { turn_ = Clock::now().time_since_epoch().count(); }
void Session::end_turn() { turn_ = kNever; }

void Session::evict(std::string_view detail) {
  if (state_ != State::kReading) return reset_connection();
  refuse({.status = 503, .code = "unavailable", .detail = std::string(detail), .retry_after = milliseconds(1'000)});
  pump();
}

std::uint64_t Session::evict_for_memory(const Waiting& seen) {
  if (being_evicted_.exchange(true)) return 0;
  service_->memory->expect_back(seen.share, seen.bytes);
  boost::asio::post(socket_.get_executor(), [self = shared_from_this(), seen] {
    // Another transfer than the one that was seen: what it held is free, or will be soon.
    const bool is_same = self->waiting_.charge == seen.charge && self->waiting_.began == seen.began;
    self->being_evicted_ = false;
    if (is_same && self->state_ != State::kClosed) {
      self->evict("the request was too slow or too large, and its memory was needed for others");
    }
    self->service_->memory->stop_expecting(seen.share, seen.bytes);
  });
  return seen.bytes;
}

bool Session::evict_for_slot(const Waiting& seen) {
  if (being_evicted_.exchange(true)) return false;
  service_->connections.expect_slot();
  boost::asio::post(socket_.get_executor(), [self = shared_from_this(), seen] {
    self->being_evicted_ = false;
    const bool is_same = self->turn_ == seen.turn.time_since_epoch().count();
    if (is_same && self->state_ != State::kClosed) {
      if (self->reader_ || self->current_) {
        self->evict("the request was slow, and the connection was needed for others");
      }
      self->close();  // Whether or not that was read: its slot is taken.
    }
    self->service_->connections.stop_expecting_slot();
  });
  return true;
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
    read_since_yield_ = 0;
    must_yield_ = false;
    for (int steps = 0; steps < kMostSteps && !must_yield_; ++steps) {
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
      return handshake();
    case State::kReading:
      return read();
    case State::kAnswering:
      return await_answer();
    case State::kContinuing:
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

bool Session::handshake() {
  const Transfer::State done = channel_->handshake().state;
  if (done == Transfer::State::kDone) {
    state_ = State::kReading;
    set_deadline(service_->limits.idle_timeout);
    return true;
  }
  if (!wait_for(done)) {
    ++service_->refused;
    close();
  }
  return false;
}

bool Session::read() {
  if (reader_ && advance({})) return true;
  return receive();
}

// False: it takes more bytes to go on.
bool Session::advance(std::string_view bytes) {
  switch (reader_->advance(bytes)) {
    case RequestReader::Step::kHead:
      on_head();
      return true;
    case RequestReader::Step::kWhole:
      dispatch();
      return true;
    case RequestReader::Step::kRefused:
      refuse(reader_->problem());
      return true;
    case RequestReader::Step::kYield:
      note_progress(reader_->charge(), current_->body_since, reader_->body_received());
      must_yield_ = true;
      return true;
    case RequestReader::Step::kMore:
      break;
  }
  if (!current_) {
    if (!reader_->is_busy()) reader_.reset();
    return false;
  }
  if (!bytes.empty()) {
    set_transfer_deadline(current_->body_since, reader_->body_received());
    note_progress(reader_->charge(), current_->body_since, reader_->body_received());
  }
  return false;
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
  read_since_yield_ += got.bytes;
  if (read_since_yield_ >= kMostReadBeforeYield) must_yield_ = true;
  if (got.state == Transfer::State::kDone) {
    if (!reader_) {
      reader_ = std::make_unique<RequestReader>(service_->limits);
      set_deadline(service_->limits.head_timeout);
      begin_turn();
    }
    advance({scratch(), got.bytes});
    return true;
  }
  // In the middle of a request nobody is there to be told.
  if (!wait_for(got.state)) close();
  return false;
}

void Session::on_head() {
  Request& request = reader_->request();
  request.peer = peer_;
  if (service_->asks_for_user && request.field("authorization").empty()) {
    if (!peer_is_our_user_) peer_is_our_user_ = platform::peer_user(socket_.native_handle()) == ::geteuid();
    request.peer_is_our_user = peer_is_our_user_;
  }
  current_ = std::make_unique<Current>();
  current_->method = request.method;
  current_->is_http_1_0 = reader_->head().is_http_1_0;
  current_->keep_alive = reader_->head().keep_alive;
  current_->takes_gzip = accepts_gzip(request.field("accept-encoding"));

  const std::uint64_t announced = reader_->head().content_length.value_or(0);
  Admission admission = admit_request(*service_, request, reader_->head().has_body());
  current_->route = admission.route;
  current_->early = std::move(admission.refusal);
  if (current_->early) {
    const bool is_short = reader_->head().content_length && announced <= kMostDropped && !reader_->wants_continue();
    if (!reader_->head().has_body() || is_short) return reader_->drop_body(kMostDropped);
    current_->keep_alive = false;
    reader_.reset();
    return answer(std::move(*current_->early));
  }
  const std::uint64_t most = current_->route->most_body_bytes(service_->limits);
  if (announced > most) {
    return refuse({.status = 413,
                   .code = "body_too_large",
                   .detail = "the body has " + std::to_string(announced) + " bytes, " + std::to_string(most) +
                             " are allowed"});
  }
  request.caller.connection = number_;
  set_caller(request.caller);
  if (request.caller.has_token) current_->caller = request.caller;
  const Share share = request.caller.name.empty() ? Share::kAnonymous : Share::kRequests;
  reader_->accept_body(most, !request.field("content-encoding").empty(), MemoryCharge(service_->memory, share, account_));
  set_transfer_deadline(current_->body_since, 0);
  if (reader_->wants_continue()) {
    out_.begin_continue();
    current_->write_since = Clock::now();
    state_ = State::kContinuing;
  }
}

// Anonymous callers are told apart by their address.
void Session::set_caller(const Identity& caller) {
  const bool is_known = !caller.name.empty();
  const std::string name = is_known ? "caller " + caller.name : "address " + peer_;
  if (account_ && account_->name == name) return;
  account_ = service_->memory->caller(name);
  const std::lock_guard lock(waiting_mutex_);
  waiting_.caller = account_;
  waiting_.is_known = is_known;
}

void Session::dispatch() {
  current_->whole_at = Clock::now();
  end_wait();
  end_turn();
  MemoryCharge body = reader_->charge().split();
  Request request = reader_->take();
  if (!reader_->is_busy()) reader_.reset();
  if (current_->early) return answer(std::move(*current_->early));
  if (!charge_pipelined()) return;
  const Share share = request.caller.name.empty() ? Share::kAnonymous : Share::kAnswers;
  current_->exchange = std::make_shared<Exchange>(
      [self = shared_from_this()] {
        boost::asio::post(self->socket_.get_executor(), [self] { self->pump(); });
      },
      service_->limits.stream_bytes, std::move(body), MemoryCharge(service_->memory, share, account_),
      request.method != Method::kGet && request.method != Method::kHead);
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
void Session::read_pipelined() {
  const std::size_t waiting = reader_ ? reader_->waiting_bytes() : 0;
  if (waiting >= kMaxPipelined) return;
  const Transfer got = channel_->read(scratch(), kMaxPipelined - waiting);
  readable_ = got.may_be_more;
  switch (got.state) {
    case Transfer::State::kDone:
      if (!reader_) reader_ = std::make_unique<RequestReader>(service_->limits);
      reader_->keep({scratch(), got.bytes});
      charge_pipelined();
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

// Early requests that are more than a little hold memory as a body does, and a client that sent them waits for us: where
// there is no room for them, or others need it, the connection ends.
bool Session::charge_pipelined() {
  const std::size_t bytes = reader_ ? reader_->waiting_bytes() : 0;
  if (bytes <= MemoryCharge::kUncounted && pipelined_charge_.bytes() == 0) return true;
  if (pipelined_charge_.bytes() == 0) pipelined_charge_ = MemoryCharge(service_->memory, waiting_.is_known ? Share::kRequests : Share::kAnonymous, account_);
  if (!pipelined_charge_.set(bytes)) {
    reset_connection();
    return false;
  }
  if (state_ == State::kAnswering || state_ == State::kStreaming) note_progress(pipelined_charge_, current_->whole_at, 0);
  return true;
}

bool Session::wait_for(Transfer::State state) {
  if (state == Transfer::State::kWantsRead) {
    watch_read();
  } else if (state == Transfer::State::kWantsWrite) {
    watch_write();
  } else {
    return false;
  }
  return true;
}

// Only to learn that the client is gone; what it sends meanwhile is taken in up to a limit.
void Session::watch_for_hangup() {
  if (!ended_ && (!reader_ || reader_->waiting_bytes() < kMaxPipelined)) watch_read();
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
    if (state_ == State::kAnswering || state_ == State::kStreaming) read_pipelined();
  }
  pump();
}

void Session::close() {
  if (closed_.exchange(true)) return;
  state_ = State::kClosed;
  if (current_) report(kClientGone);
  if (current_ && current_->exchange) current_->exchange->detach();
  current_.reset();
  reader_.reset();
  channel_.reset();
  error_code ignored;
  socket_.close(ignored);
  out_.release();
  pipelined_charge_.set(0);
  end_wait();
  end_turn();
  service_->connections.remove(*this);
}

}  // namespace bide::server
