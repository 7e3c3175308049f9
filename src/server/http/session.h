// Session: one connection, from its first byte to its last. A state machine that goes on until it would block, and holds no
// buffer while it waits for the next request: 5 000 idle clients cost little.
//
//   handshake -> reading -> answering -> writing -> reading ...
//                |  | ^         `-> streaming -'
//                |  `-+-> continuing (100 Continue is written)
//                `-> (refused) -> writing -> lingering -> closed
//
// Requests that come before the answer to the one before (pipelining) wait their turn, so answers come in order.

#pragma once

#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/channel.h"
#include "server/http/exchange.h"
#include "server/http/identity.h"
#include "server/http/limits.h"
#include "server/http/memory_budget.h"
#include "server/http/request_reader.h"
#include "server/http/response_writer.h"
#include "server/http/route.h"
#include "server/http/service.h"

namespace bide::server {

using Socket = boost::asio::generic::stream_protocol::socket;

class Session : public std::enable_shared_from_this<Session> {
 public:
  // The socket's executor must be a strand, or belong to a loop with one thread.
  Session(Socket socket, std::unique_ptr<Channel> channel, std::string peer, std::shared_ptr<Service> service);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The rest is safe to call from any thread.
  void start();
  // What is under way is finished, an idle connection closes, a stream ends.
  void drain();
  void abort();
  bool is_overdue(std::chrono::steady_clock::time_point now) const { return now.time_since_epoch().count() >= deadline_; }
  void give_up_overdue();
  // Ends a request that is not whole, a wait or a stream whose caller may not stay.
  void revalidate_caller();
  bool is_closed() const { return closed_; }

  // What waits for the client. Only a body, an answer or early requests hold memory; without bytes there is none of these.
  struct Waiting {
    std::uint64_t bytes = 0;
    Share share = Share::kAnonymous;
    const MemoryCharge* charge = nullptr;                // Of the bytes; only to be compared.
    std::uint64_t transferred = 0;                       // Since `began`.
    std::chrono::steady_clock::time_point began = {};
    std::chrono::steady_clock::time_point last = {};     // It went on.
    std::chrono::steady_clock::time_point turn = {};     // It is the client's turn since then; max(): it is ours.
    std::shared_ptr<MemoryCaller> caller = {};           // Who asked last.
    bool is_known = false;                               // And it was somebody with a name.

    // It stands still, or goes on so slowly that it is the first to be ended when memory is needed.
    bool is_lagging(std::chrono::steady_clock::time_point now, const HttpLimits& limits) const;
  };
  Waiting waiting() const;
  // Ends the connection so that others have its memory, unless the transfer has come to its end meanwhile. How many bytes
  // that will free; zero when it is being evicted already.
  std::uint64_t evict_for_memory(const Waiting& seen);
  // Ends it so that another connection can be accepted, unless the client has done its part meanwhile. False: it is being
  // evicted already.
  bool evict_for_slot(const Waiting& seen);
  bool is_being_evicted() const { return being_evicted_; }

 private:
  enum class State : std::uint8_t { kHandshake, kReading, kContinuing, kAnswering, kWriting, kStreaming, kLingering, kClosed };
  // What is known of a request from its head until its answer is out.
  struct Current {
    const Route* route = nullptr;
    std::shared_ptr<Exchange> exchange = {};
    Identity caller = {};
    std::shared_ptr<Receipt> receipt = {};  // Of the answer that is being written.
    std::optional<Response> early = {};  // The answer, known before the body came.
    std::chrono::steady_clock::time_point body_since = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point whole_at = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point write_since = {};
    MemoryCharge charge = {};  // Of what is being written.
    int status = 0;
    Method method = Method::kOther;
    bool is_http_1_0 = false;
    bool keep_alive = false;
    bool takes_gzip = false;
    bool stream_ended = false;
  };

  void pump();
  bool step();
  // Each does one step of its state; false: it waits.
  bool handshake();
  bool read();
  bool receive();
  bool advance(std::string_view bytes);
  bool await_answer();
  bool write();
  bool write_stream();
  bool linger();

  void on_head();
  void set_caller(const Identity& caller);
  void dispatch();
  void answer(Response response, MemoryCharge charge = {});
  void begin_stream(const Response& head);
  ResponseForm form(bool keep_alive) const;
  void refuse(const wire::Problem& problem);
  void finish_answer();
  void report(int status) const;
  void read_pipelined();
  void close();

  // Waits for what the channel needs to go on. False: the transfer is done, or the connection is over.
  bool wait_for(Transfer::State state);
  void watch_for_hangup();
  void watch_read();
  void watch_write();
  void on_ready(bool readable);
  void on_deadline();
  // A transfer that began then has gone on so far, and waits with so much of the memory.
  void note_progress(const MemoryCharge& charge, std::chrono::steady_clock::time_point began, std::uint64_t transferred);
  void reset_connection();
  void evict(std::string_view detail);
  // Nothing waits for the client any more, or something else does.
  void end_wait();
  void begin_turn();
  void end_turn();
  bool charge_pipelined();
  void set_deadline(std::chrono::milliseconds from_now);
  // From `since` on, and longer the more went through.
  void set_transfer_deadline(std::chrono::steady_clock::time_point since, std::uint64_t bytes);
  void no_deadline();

  const std::shared_ptr<Service> service_;
  const std::uint64_t number_;
  const std::string peer_;
  bool peer_is_our_user_ = false;  // Once it was found out.
  Socket socket_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<RequestReader> reader_;  // While there are bytes of a request.
  std::unique_ptr<Current> current_;       // While there is a request.
  ResponseWriter out_;
  std::uint64_t lingered_ = 0;  // Bytes read after the last answer.
  MemoryCharge pipelined_charge_;  // Of requests that came before the answer to the one before.

  std::atomic<std::int64_t> deadline_;  // Of the steady clock, in its ticks.
  std::atomic<bool> closed_ = false;
  std::atomic<bool> being_evicted_ = false;

  std::atomic<std::int64_t> turn_;  // As the deadline; see Waiting.
  mutable std::mutex waiting_mutex_;  // Guards waiting_; only the strand changes it.
  Waiting waiting_;

  std::shared_ptr<MemoryCaller> account_;  // Of who asked last; null: nobody yet.
  State state_ = State::kHandshake;
  bool readable_ = false;       // As far as we know there is something to read.
  bool watches_read_ = false;
  bool watches_write_ = false;
  bool ended_ = false;          // The client writes nothing more.
  bool close_after_ = false;    // The answer that is being written.
  std::size_t read_since_yield_ = 0;  // Bytes, since other connections of the thread had their turn.
  bool must_yield_ = false;           // They have it before the next step.
};

}  // namespace bide::server
