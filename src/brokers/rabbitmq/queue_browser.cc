#include "brokers/rabbitmq/queue_browser.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr ChannelNumber kAsking = 1;
constexpr std::string_view kMarkerHeader = "bide-marker";
// So that a marker whose writer has died goes away by itself.
constexpr const char* kMarkerLife = "60000";
constexpr Milliseconds kGivingBack{2000};
constexpr std::uint32_t kAcksAtOnce = 16;
constexpr Milliseconds kKnockAgain{20};
constexpr std::uint16_t kPrefetch = 2000;
// What has been announced and does not come for so long has perhaps gone.
constexpr Milliseconds kSilence{500};

}  // namespace

QueueBrowser::Session::~Session() {
  Connection* const connection = owner_.connection_.get();
  if (connection == nullptr || !connection->alive()) return;
  if (removed_ > 0) (void)pause();
  (void)connection->close_channel(channel_);
  // The server gives back in its own time; whoever comes next must find everything.
  const steady_clock::time_point deadline = steady_clock::now() + kGivingBack;
  const std::uint32_t left = std::max(expected_, shown_) - removed_;
  while (connection->alive() && steady_clock::now() < deadline) {
    const Result<QueueCounts> counts = connection->look_at_queue(kAsking, queue_);
    owner_.left_over_ = removed_ > 0 && counts && counts->messages > left;
    if (!counts || counts->messages >= left) break;
    platform::wait_ready({}, Milliseconds(2));
  }
  (void)connection->delete_queue(kAsking, lock_, false, false);
  if (!connection->alive()) owner_.connection_.reset();
}

Status QueueBrowser::Session::remove(std::uint64_t tag) {
  if (owner_.connection_ == nullptr) return Error{ErrorCode::kUnavailable, "the connection is lost"};
  if (Status sent = owner_.connection_->ack(channel_, tag, false); !sent) return unconfirmed(sent.error());
  ++removed_;
  if (removed_ % kAcksAtOnce != 0) return {};
  if (Status paused = pause(); !paused) return unconfirmed(paused.error());
  return {};
}

// The server passes only so many acknowledgements on at once, and forgets the others when the channel is closed.
Status QueueBrowser::Session::pause() {
  const Result<QueueCounts> counts = owner_.connection_->look_at_queue(channel_, queue_);
  if (!counts) return counts.error();
  platform::wait_ready({}, Milliseconds(2));
  return {};
}

// One more consumer, when those that are there have all they may have.
Status QueueBrowser::Session::take_more() {
  if (shown_ - removed_ < prefetch_) return {};
  ConsumeOptions options;
  options.queue = queue_;
  options.tag = "bide-browser-" + std::to_string(prefetch_);
  options.prefetch = kPrefetch;
  prefetch_ += kPrefetch;
  return owner_.connection_->consume(channel_, options);
}

Status QueueBrowser::connect() {
  // It may have been idle for so long that the server has given it up.
  if (connection_ != nullptr) {
    while (true) {
      const Result<std::optional<Event>> event = connection_->next_event();
      if (!event) connection_.reset();
      if (!event || !event->has_value()) break;
    }
  }
  if (connection_ != nullptr) return {};
  // Without heartbeats: nobody would keep them while nobody looks.
  Settings settings = settings_;
  settings.heartbeat = Milliseconds(0);
  Result<std::unique_ptr<Connection>> opened = Connection::open(settings, "inspector", 0, ConnectionUse::kReading);
  if (!opened) return opened.error();
  connection_ = std::move(*opened);
  last_channel_ = kAsking;
  return connection_->open_channel(kAsking);
}

Result<QueueCounts> QueueBrowser::look_at(const std::string& queue) {
  if (Status connected = connect(); !connected) return connected.error();
  Result<QueueCounts> counts = connection_->look_at_queue(kAsking, queue);
  if (counts) return counts;
  if (counts.error().code != ErrorCode::kNotFound) {
    connection_.reset();
    return counts;
  }
  if (Status opened = connection_->open_channel(kAsking); !opened) {
    connection_.reset();
    return opened.error();
  }
  return QueueCounts{};
}

Result<std::uint32_t> QueueBrowser::purge(const std::string& queue) {
  if (Status connected = connect(); !connected) return connected.error();
  Result<std::uint32_t> purged = connection_->purge_queue(kAsking, queue);
  if (purged) return purged;
  connection_.reset();
  return unconfirmed(purged.error());
}

Status QueueBrowser::lock(const std::string& name) {
  const steady_clock::time_point deadline = steady_clock::now() + settings_.patience;
  while (true) {
    const Result<std::string> locked = connection_->declare_private_queue(kAsking, name);
    if (locked) return {};
    if (!connection_->alive() || locked.error().code != ErrorCode::kBusy) return locked.error();
    if (Status again = connection_->open_channel(kAsking); !again) return again;
    if (steady_clock::now() > deadline) {
      return Error{ErrorCode::kBusy, name + " is locked: somebody else is looking; try again"};
    }
    platform::wait_ready({}, kKnockAgain);
  }
}

Result<std::unique_ptr<QueueBrowser::Session>> QueueBrowser::browse(const std::string& name, const std::string& lock_name,
                                                     const Reader& reader) {
  if (Status connected = connect(); !connected) return connected.error();
  const auto fail = [&](Error error) -> Result<std::unique_ptr<Session>> {
    connection_.reset();
    return error;
  };
  if (const auto there = connection_->look_at_queue(kAsking, name); !there) {
    if (there.error().code != ErrorCode::kNotFound) return fail(there.error());
    if (Status again = connection_->open_channel(kAsking); !again) return fail(again.error());
    return std::unique_ptr<Session>();
  }
  if (Status locked = lock(lock_name); !locked) return fail(locked.error());
  const ChannelNumber channel = ++last_channel_ > 1000 ? last_channel_ = kAsking + 1 : last_channel_;
  if (Status opened = connection_->open_channel(channel); !opened) return fail(opened.error());
  auto session = std::make_unique<Session>(*this, name, lock_name, channel);
  // Counted with the lock: everything that others have looked at is back.
  const Result<QueueCounts> counts = connection_->look_at_queue(channel, name);
  if (!counts) return fail(counts.error());
  session->expected_ = counts->messages;

  std::string marker;  // Empty: not needed so far.
  steady_clock::time_point last = steady_clock::now();
  while (marker.empty() ? session->shown_ < session->expected_ : true) {
    if (Status more = session->take_more(); !more) return fail(more.error());
    Result<std::optional<Event>> event = connection_->next_event();
    if (!event) return fail(event.error());
    if (!event->has_value()) {
      const auto silent = steady_clock::now() - last;
      if (silent > settings_.patience) return fail({ErrorCode::kUnavailable, "the server does not show what is in " + name});
      if (silent > kSilence && !settings_.compat.empty()) {
        // No marker among messages of others; so the queue is asked whether anything is left.
        const Result<QueueCounts> left = connection_->look_at_queue(channel, name);
        if (!left) return fail(left.error());
        if (left->messages == 0 && !connection_->has_buffered_input()) break;
      }
      if (silent > kSilence && marker.empty()) {
        marker = "marker-" + std::to_string(stamps_.next());
        if (Status sent = write_marker(channel, name, marker); !sent) return fail(sent.error());
      }
      std::array<platform::Readiness, 1> ready = {platform::Readiness{connection_->descriptor(), true, false}};
      platform::wait_ready(ready, Milliseconds(100));
      continue;
    }
    if (const ChannelClosed* closed = std::get_if<ChannelClosed>(&**event)) return fail(closed->error);
    Delivery* delivery = std::get_if<Delivery>(&**event);
    if (delivery == nullptr || delivery->channel != channel) continue;
    last = steady_clock::now();
    session->shown_ += 1;
    if (const Field* mark = find_field(delivery->message.headers, kMarkerHeader)) {
      if (marker.empty() || mark->text() == nullptr || *mark->text() != marker) continue;  // Somebody else's.
      if (Status gone = session->remove(delivery->tag); !gone) return fail(gone.error());
      break;
    }
    if (!reader(*session, std::move(*delivery))) break;
  }
  return session;
}

Status QueueBrowser::write_marker(ChannelNumber channel, const std::string& queue, const std::string& text) {
  AmqpMessage marker;
  marker.message_id = text;
  marker.expiration = kMarkerLife;
  marker.headers = {{std::string(kMarkerHeader), text}};
  return connection_->publish(channel, "", queue, marker, true);
}

}  // namespace bide::brokers::rabbitmq
