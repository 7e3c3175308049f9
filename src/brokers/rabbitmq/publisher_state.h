// What the publisher's thread knows. Used by the sources of Publisher only:
//
//   publisher.cc          the calls from other threads; the thread and its connection
//   publisher_sending.cc  from what waits to what is confirmed

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "brokers/rabbitmq/backlogs.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/declared.h"
#include "brokers/rabbitmq/publisher.h"
#include "core/drain_rate.h"
#include "platform/backoff.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

// A publication on its way.
struct PendingPublish {
  Publication publication;
  std::chrono::steady_clock::time_point submitted;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::size_t bytes = 0;
  int closures = 0;        // So often the server has closed the channel while it was under way.
  bool sent = false;       // At least once.
  bool uncertain = false;  // Sent, and the answer was lost: it may have been written.
  bool returned = false;
  bool made_again = false;    // What it needs, after it was returned.
  std::chrono::steady_clock::time_point refused_since = {};  // By basic.nack.
  std::optional<Error> refusal = {};  // The newest one that was for now only.
  bool awaits_count = false;  // Its queue may be full: sent when that is known.
  bool completed = false;     // The caller has been told.
  std::string return_text = {};
  std::string exchange = {};  // Of the newest try.
  std::string key = {};
};

// What was sent on one channel and is not answered.
struct SentOn {
  ChannelNumber channel = 0;  // Another one each time it is opened: late confirms of the one before are not its own.
  // By their tags. One that is never confirmed must not hold up the others, so they leave in any order.
  std::map<std::uint64_t, PendingPublish> in_flight = {};
  std::size_t open = 0;  // In flight, and somebody waits for it.
  std::chrono::steady_clock::time_point left = {};  // Since then nothing more is sent on it.
};

// What goes out on one channel, and waits for nothing but that channel's confirms.
struct Lane {
  SentOn current;
  // Channels that are not used any more and still owe answers, oldest first.
  std::deque<SentOn> old;
  std::deque<PendingPublish> waiting;  // Not sent, or to be sent again.
  // Refused for now, to be sent again then; the others do not wait for them.
  std::multimap<std::chrono::steady_clock::time_point, PendingPublish> later;
  std::uint64_t last_tag = 0;
  bool renew = false;  // The channel.
  std::chrono::steady_clock::time_point renewed = {};
  std::chrono::steady_clock::time_point next_look = {};  // For those that have waited too long.

  bool empty() const {
    return waiting.empty() && later.empty() && current.open == 0 &&
           std::all_of(old.begin(), old.end(), [](const SentOn& each) { return each.open == 0; });
  }
  // Null: not one of its channels.
  SentOn* sent_on(ChannelNumber channel) {
    if (current.channel == channel) return &current;
    const auto found = std::find_if(old.begin(), old.end(), [&](const SentOn& each) { return each.channel == channel; });
    return found == old.end() ? nullptr : &*found;
  }
};

struct Publisher::State {
  static constexpr ChannelNumber kDeclaring = 1;
  static constexpr ChannelNumber kCounting = 2;
  static constexpr ChannelNumber kReplies = 3;  // The lanes have those behind it.
  static constexpr std::size_t kDrainWatched = 4096;  // With fewer entries nobody asks how fast they leave.

  State(const Settings& given, ReplyQueue* reply_queue)
      : settings(given),
        names(given.prefix),
        replies(reply_queue),
        backlogs(given.max_length),
        declared(
            settings, kDeclaring, [this](const std::string& queue) { announce(queue); },
            [this](const std::string& queue, std::uint64_t messages) {
              backlogs.counted(queue, messages, std::chrono::steady_clock::now());
            }) {}

  const Settings settings;
  const Names names;
  core::DrainRate drain_rate;
  platform::Waker waker;

  // ---- The thread's own.
  ReplyQueue* const replies;  // May be null.
  Backlogs backlogs;
  bool counting_open = false;  // The channel.
  std::string counted;         // Of which queue the answer has not come; empty: none.
  Declared declared;
  std::unique_ptr<Connection> connection;
  platform::Backoff backoff;
  std::size_t next_host = 0;
  std::chrono::steady_clock::time_point next_connect = {};
  // Notices have a channel and a window of their own: the stream may have no leader for a long time after the death of
  // a node, and jobs must not wait for it.
  Lane jobs;
  Lane notices;
  ChannelNumber last_channel = kReplies;
  std::size_t message_bytes = 0;  // Of the longest body that the server takes.
  bool obeys_priorities = false;
  std::map<std::string, std::chrono::steady_clock::time_point> full_until;  // Queues that refuse, by destination.
  // When a queue that was removed is to be made again.
  std::chrono::steady_clock::time_point forget_declared = std::chrono::steady_clock::time_point::max();
  std::optional<std::chrono::steady_clock::time_point> stop_at;  // Then whatever is under way is given up.

  mutable std::mutex mutex;  // Guards everything below.
  std::vector<PendingPublish> inbox;
  std::vector<PendingPublish> refused;
  std::size_t entries = 0;  // Everywhere.
  std::size_t bytes = 0;
  bool stopping = false;
  std::string trouble;   // Empty: sending. Otherwise why not.
  bool blocked = false;  // The trouble is that the server takes nothing now.
  Stats stats;

  std::thread thread;

  void run();
  bool step();
  void take_inbox();
  void connect();
  Status set_up();
  void lose(const Error& error);
  Status open_lane(Lane& lane);
  void take_closure(Lane& lane, ChannelNumber channel, const Error& error);
  std::vector<PendingPublish> take_back(SentOn& sent);
  std::vector<PendingPublish> take_back_all(Lane& lane);
  void resend(Lane& lane, std::vector<PendingPublish> publishes);
  void renew_channel(Lane& lane);
  void close_old(Lane& lane);
  bool may_send(const Lane& lane) const;
  void send_what_can_be_sent(Lane& lane);
  void open_replies();
  Status prepare(PendingPublish& entry, Route& route);
  Status prepare_path(const PendingPublish& entry, const std::string& queue, Route& route);
  Status declare_foundation();
  bool send(Lane& lane, PendingPublish entry);
  void send_later(Lane& lane, PendingPublish entry);
  void take_up_later(Lane& lane);
  void ask_for_counts();
  void take_counts(const std::string& queue, std::uint64_t messages);
  void take_events();
  void take_confirm(Lane& lane, const Confirm& confirm);
  void take_return(Lane& lane, ReturnedMessage returned);
  void settle(Lane& lane, PendingPublish& entry, bool accepted);
  void complete(PendingPublish& entry, Status status);
  void give_up_late(Lane& lane, std::chrono::steady_clock::time_point now);
  void give_up_late(SentOn& sent, std::chrono::steady_clock::time_point now, const std::string& reason);
  void give_up_all(Lane& lane);
  void set_trouble(std::string text, bool is_blocked);
  void announce(const std::string& queue);
  std::optional<Milliseconds> longest_wait() const;
  Lane* lane_of(ChannelNumber channel);
};

}  // namespace bide::brokers::rabbitmq
