// What the publisher's thread knows. Used by the sources of Publisher only:
//
//   publisher.cc          the calls from other threads; the thread and its connection
//   publisher_sending.cc  from what waits to what is confirmed

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "brokers/rabbitmq/backoff.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/declared.h"
#include "brokers/rabbitmq/publisher.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

// A publication on its way.
struct Letter {
  Publication publication;
  std::chrono::steady_clock::time_point submitted;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::size_t bytes = 0;
  int tries = 0;         // Sent and not confirmed because the channel was closed, or returned.
  bool sent = false;       // At least once.
  bool uncertain = false;  // Sent, and the answer was lost: it may have been written.
  bool returned = false;
  bool completed = false;  // The caller has been told.
  bool over = false;       // The server has answered to its tag.
  std::string return_text = {};
};

struct Publisher::State {
  static constexpr ChannelNumber kPublishing = 1;
  static constexpr ChannelNumber kDeclaring = 2;

  explicit State(const Settings& given)
      : settings(given),
        names(given.prefix),
        declared(settings, kDeclaring, [this](const std::string& queue) { announce(queue); }) {}

  const Settings settings;
  const Names names;
  platform::Waker waker;

  // ---- The thread's own.
  Declared declared;
  std::unique_ptr<Connection> connection;
  Backoff backoff;
  std::size_t next_host = 0;
  std::chrono::steady_clock::time_point next_connect = {};
  std::chrono::steady_clock::time_point next_send = {};  // After a declaration that was refused for now.
  std::deque<Letter> waiting;    // Not sent, or to be sent again.
  std::deque<Letter> in_flight;  // Sent, in the order of their tags.
  std::uint64_t first_tag = 1;  // Of in_flight.front().

  mutable std::mutex mutex;  // Guards everything below.
  std::vector<Letter> inbox;
  std::vector<Letter> refused;
  std::size_t entries = 0;  // Everywhere.
  std::size_t bytes = 0;
  bool stopping = false;
  std::string trouble;      // Empty: sending. Otherwise why not.
  bool blocked = false;     // The trouble is that the server takes nothing now.
  Stats stats;

  std::thread thread;

  void run();
  bool step();
  void take_inbox();
  void connect();
  Status set_up();
  void lose(const Error& error);
  void reopen_channel(const Error& error);
  bool may_send() const;
  void send_what_can_be_sent();
  Status prepare(Letter& entry, Route& route);
  bool send(Letter entry);
  void take_events();
  void take_confirm(const Confirm& confirm);
  void take_return(ReturnedMessage returned);
  void settle(Letter& entry, bool accepted);
  void complete(Letter& entry, Status status);
  void give_up_late(std::chrono::steady_clock::time_point now);
  void set_trouble(std::string text, bool is_blocked);
  void announce(const std::string& queue);
  std::optional<Milliseconds> longest_wait() const;
};

}  // namespace bide::brokers::rabbitmq
