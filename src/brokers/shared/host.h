// Host: lets other processes work on an engine that this one owns, through a socket in its data directory. One thread
// for all of them; each of the others is a guest.
//
// A guest that ends without saying goodbye has crashed: its leases are charged with that at once. One that says goodbye
// has them returned. One that only falls silent, or talks nonsense, is cut off, and its leases run out in time.
//
// Guests of other users are not let in. Nothing that a guest sends or fails to read can block or fill up the host.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "bide/result.h"
#include "brokers/shared/mailbox.h"
#include "brokers/shared/visitor.h"
#include "engine/engine.h"
#include "platform/local_socket.h"

namespace bide::brokers::shared {

struct HostLimits {
  std::size_t guests = 256;
  std::size_t calls = 4096;             // Of one guest, begun and not answered: beyond it, its calls wait.
  std::size_t watches = 10'000;         // Of one guest; beyond it they are refused.
  std::size_t subscriptions = 256;      // Of one guest; beyond it they are refused.
  std::size_t backlog_bytes = 4 << 20;  // Not read by a guest: beyond it, it gets no more leases and is not heard.
  std::size_t backlog_most_bytes = 256 << 20;  // Beyond it, a guest that reads nothing for a second is cut off.
  Milliseconds silence{30'000};                // Something waits for it and it reads nothing: it is cut off.
  Milliseconds greeting{10'000};               // Let in and not a word: likewise.
};

class Host {
 public:
  // Whoever calls holds the lock of the directory, and keeps the engine for as long as the host lives.
  //
  // An error when there can be no socket in this directory.
  static Result<std::unique_ptr<Host>> open(const std::string& directory, engine::Engine& engine,
                                            HostLimits limits = {});
  // Answers what was begun, says goodbye to everybody, and removes the socket.
  ~Host();

 private:
  struct Holding {
    JobId id;
    std::uint64_t visitor = 0;
    std::uint64_t sent_at = 0;  // It was sent when so many bytes went to the visitor.
  };
  enum class Phase { kServing, kAnswering, kFlushing };

  Host(platform::LocalListener listener, engine::Engine& engine, HostLimits limits);

  void run();
  void wait();
  void let_in();
  void serve(Visitor& visitor);
  bool greet(Visitor& visitor, const Frame& frame);
  bool take_frame(Visitor& visitor, const Frame& frame);
  bool subscribe(Visitor& visitor, const Frame& frame);
  bool unsubscribe(Visitor& visitor, const Frame& frame);
  bool set_credit(Visitor& visitor, const Frame& frame);
  bool set_delivery_limit(Visitor& visitor, const Frame& frame);
  bool mark_delivered(const Frame& frame);
  bool take_holding(Visitor& visitor, const Frame& frame);
  bool extend(Visitor& visitor, const Frame& frame);
  bool settle(Visitor& visitor, const Frame& frame);
  bool call(Visitor& visitor, const Frame& frame);
  bool watch(Visitor& visitor, const Frame& frame);
  bool unwatch(Visitor& visitor, const Frame& frame);
  void answer(Visitor& visitor, std::uint64_t number, const Answer& value);
  void deliver(std::uint64_t visitor, std::uint64_t subscription, bool outlives, std::int64_t granted_ms,
               std::vector<Lease> leases);
  void end(Visitor& visitor);
  void end_leases(std::vector<LeaseRef> leases, engine::WorkerEnd how, std::uint64_t visitor);
  void tell_pressure();
  void watch_the_clock();
  void close_in_order();

  const HostLimits limits_;
  engine::Engine& engine_;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::atomic<bool> closing_ = false;

  // Of the host's thread.
  std::unique_ptr<platform::LocalListener> listener_;
  std::map<std::uint64_t, std::unique_ptr<Visitor>> visitors_;
  std::unordered_map<std::uint64_t, Holding> holdings_;  // By token. Leases that end with their visitor.
  std::uint64_t last_visitor_ = 0;
  std::size_t ends_pending_ = 0;
  bool crowded_ = false;
  bool closing_seen_ = false;
  Phase phase_ = Phase::kServing;
  std::int64_t closing_since_ms_ = 0;

  std::thread thread_;
};

}  // namespace bide::brokers::shared
