// SharedServer: lets other processes work on an engine that this one owns, through a socket in its data directory. One thread
// for all of them; each of the others is a client.
//
// A client whose connection ends without a goodbye frame has crashed: its leases are charged with that at once. After a
// goodbye they are returned. A client that stops reading, or sends what is not a frame, is disconnected; its leases
// expire.
//
// Processes of other users are refused. Nothing that a client sends or fails to read can block the server or exhaust its
// memory.

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
#include "brokers/shared/session.h"
#include "engine/engine.h"
#include "platform/local_socket.h"
#include "platform/task_queue.h"

namespace bide::brokers::shared {

struct SharedServerLimits {
  std::size_t clients = 256;
  std::size_t calls = 4096;             // Of one client, begun and not answered: beyond it, its calls wait.
  std::size_t watches = 10'000;         // Of one client; beyond it they are refused.
  std::size_t subscriptions = 256;      // Of one client; beyond it they are refused.
  std::size_t backlog_bytes = 4 << 20;  // Not read by a client: beyond it, it gets no more leases and is not heard.
  std::size_t backlog_most_bytes = 256 << 20;  // Beyond it, a client that reads nothing for a second is cut off.
  Milliseconds silence{30'000};                // Something waits for it and it reads nothing: it is cut off.
  Milliseconds handshake{10'000};              // Connected and no hello: likewise.
};

class SharedServer {
 public:
  // Whoever calls holds the lock of the directory, and keeps the engine for as long as the server lives.
  //
  // An error when there can be no socket in this directory.
  static Result<std::unique_ptr<SharedServer>> open(const std::string& directory, engine::Engine& engine,
                                                    SharedServerLimits limits = {});
  // Answers the calls that were begun, sends goodbye to every client, and removes the socket.
  ~SharedServer();

 private:
  struct SessionLease {
    JobId id;
    std::uint64_t session = 0;
    std::uint64_t sent_at = 0;  // It was sent when so many bytes went to the session.
  };
  enum class Phase { kServing, kAnswering, kFlushing };

  SharedServer(platform::LocalListener listener, engine::Engine& engine, SharedServerLimits limits);

  void run();
  void wait();
  void accept_sessions();
  void serve(Session& session);
  bool handshake(Session& session, const Frame& frame);
  bool take_frame(Session& session, const Frame& frame);
  bool subscribe(Session& session, const Frame& frame);
  bool unsubscribe(Session& session, const Frame& frame);
  bool set_credit(Session& session, const Frame& frame);
  bool set_delivery_limit(Session& session, const Frame& frame);
  bool mark_delivered(const Frame& frame);
  bool report_progress(const Frame& frame);
  bool adopt_leases(Session& session, const Frame& frame);
  bool extend(Session& session, const Frame& frame);
  bool settle(Session& session, const Frame& frame);
  bool call(Session& session, const Frame& frame);
  bool watch(Session& session, const Frame& frame);
  bool unwatch(Session& session, const Frame& frame);
  // Answers a call that was counted, unless its session is gone.
  void finish_call(std::uint64_t session, std::uint64_t call, const Answer& value);
  void answer(Session& session, std::uint64_t number, const Answer& value);
  void deliver(std::uint64_t session, std::uint64_t subscription, bool outlives, std::int64_t granted_ms,
               std::vector<Lease> leases);
  void end(Session& session);
  void end_leases(std::vector<LeaseRef> leases, engine::WorkerEnd how, std::uint64_t session);
  void send_pressure();
  void check_timeouts();
  void advance_shutdown();

  const SharedServerLimits limits_;
  engine::Engine& engine_;
  const std::shared_ptr<platform::PollableTaskQueue> tasks_ = std::make_shared<platform::PollableTaskQueue>();
  std::atomic<bool> closing_ = false;

  // Of the server's thread.
  std::unique_ptr<platform::LocalListener> listener_;
  std::map<std::uint64_t, std::unique_ptr<Session>> sessions_;
  std::unordered_map<std::uint64_t, SessionLease> session_leases_;  // By token. Leases that end with their session.
  std::uint64_t last_session_ = 0;
  std::size_t ends_pending_ = 0;
  bool full_ = false;
  bool closing_seen_ = false;
  Phase phase_ = Phase::kServing;
  std::int64_t closing_since_ms_ = 0;

  std::thread thread_;
};

}  // namespace bide::brokers::shared
