// The part of Session that writes an answer, and what follows.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "server/http/session.h"

namespace bide::server {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// After the last answer we read on for a while: a connection that is closed with bytes unread takes the answer with it.
constexpr milliseconds kLinger{2'000};

}  // namespace

bool Session::await_answer() {
  std::optional<Exchange::Answer> given = current_->exchange->take_answer();
  if (!given) {
    watch_for_hangup();
    return false;
  }
  if (given->is_stream && current_->method != Method::kHead) {
    begin_stream(given->response);
  } else {
    if (given->is_stream) current_->exchange->client_is_gone();
    answer(std::move(given->response), std::move(given->charge));
  }
  return true;
}

ResponseForm Session::form(bool keep_alive) const {
  return {.method = current_->method,
          .is_http_1_0 = current_->is_http_1_0,
          .keep_alive = keep_alive,
          .takes_gzip = current_->takes_gzip};
}

void Session::answer(Response response, MemoryCharge charge) {
  if (response.status == kClientGone) return close();
  ++service_->requests;
  const bool keep = current_->keep_alive && !service_->draining && (!ended_ || reader_);
  close_after_ = !keep;
  current_->status = response.status;
  current_->receipt = std::move(response.receipt);
  out_.begin(std::move(response), form(keep));
  current_->charge = std::move(charge);
  current_->charge.set(std::min(current_->charge.bytes(), static_cast<std::uint64_t>(out_.bytes())));
  current_->write_since = Clock::now();
  end_wait();
  note_progress(current_->charge, current_->write_since, 0);
  begin_turn();
  state_ = State::kWriting;
}

void Session::refuse(const wire::Problem& problem) {
  ++service_->refused;
  Response response = to_response(problem);
  // Whatever follows cannot be told apart from the request that was refused.
  if (!current_) current_ = std::make_unique<Current>();
  current_->keep_alive = false;
  reader_.reset();
  answer(std::move(response));
}

bool Session::write() {
  const std::uint64_t before = out_.written();
  const Transfer sent = out_.write(*channel_);
  if (out_.written() > before) note_progress(current_->charge, current_->write_since, out_.written());
  if (sent.state == Transfer::State::kDone) {
    if (state_ == State::kWriting) {
      finish_answer();
    } else {
      out_.release();
      state_ = State::kReading;
    }
    return true;
  }
  if (wait_for(sent.state)) {
    set_transfer_deadline(current_->write_since, out_.written());
  } else {
    close();
  }
  return false;
}

void Session::begin_stream(const Response& head) {
  ++service_->requests;
  const bool keep = current_->keep_alive && !service_->draining && !current_->is_http_1_0;
  close_after_ = !keep;
  current_->status = head.status;
  out_.begin_stream(head, form(keep));
  state_ = State::kStreaming;
}

bool Session::write_stream() {
  const Transfer sent = out_.write(*channel_);
  if (sent.state != Transfer::State::kDone) {
    if (sent.state != Transfer::State::kWantsWrite) {
      close();
    } else if (!watches_write_) {
      // Not again while we wait: somebody else's bytes do not make this client read.
      set_deadline(service_->limits.transfer_timeout);
      note_progress(current_->charge, Clock::now(), 0);
      watch_write();
    }
    return false;
  }
  if (current_->stream_ended) {
    finish_answer();
    return true;
  }
  Exchange::Part part = current_->exchange->take_part();
  if (part.overflowed) {
    close();
    return false;
  }
  out_.add(std::move(part.bytes), part.ended);
  current_->charge = std::move(part.charge);
  end_wait();
  current_->stream_ended = part.ended;
  if (out_.is_empty() && !part.ended) {
    out_.release();
    no_deadline();
    watch_for_hangup();
    return false;
  }
  return true;
}

void Session::report(int status) const {
  if (!service_->on_served) return;
  service_->on_served({.method = current_->method,
                       .pattern = current_->route == nullptr ? std::string_view() : current_->route->pattern,
                       .status = status,
                       .duration = Clock::now() - current_->whole_at,
                       .peer = peer_});
}

void Session::finish_answer() {
  if (current_->receipt) current_->receipt->written();
  report(current_->status);
  end_wait();
  pipelined_charge_.set(0);
  begin_turn();
  current_.reset();
  out_.release();
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

}  // namespace bide::server
