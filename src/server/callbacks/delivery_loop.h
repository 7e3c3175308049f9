// DeliveryLoop: delivers the jobs of the pushed queues to their callbacks. To the broker it is a worker: it takes leases,
// extends and settles them.
//
//   broker ──leases──► waiting by host ──► HttpClient ──► receiver
//     ▲                                        │ answer
//     └────────── settlements ◄── result_of() ◄┘
//
// One thread owns everything; others post tasks to it. A job whose host is paused or at its limit is returned uncharged,
// so that a slow host does not hold up the others.
//
//   a job without a callback          returned with a note, until somebody cancels it
//   a URL that the policy forbids     dead, as rejected
//   answered 202                      its lease is kept alive until the receiver settles it or its time limit passes, by
//                                     the next process too

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "http_client/http_client.h"
#include "platform/random.h"
#include "platform/task_queue.h"
#include "server/callbacks/callback_options.h"
#include "server/callbacks/delivery_log.h"
#include "server/callbacks/host_table.h"
#include "server/callbacks/pending_settles.h"
#include "server/callbacks/sent_leases.h"
#include "server/callbacks/webhook_signer.h"

namespace bide::server {

// Both run on any thread and must not block.
struct DeliveryHooks {
  std::function<void(const DeliveryRecord&)> on_delivery = nullptr;
  std::function<void(std::string_view)> on_problem = nullptr;  // One line for the log.
};

struct DeliveryStatus {
  std::size_t waiting = 0;
  std::size_t sending = 0;
  std::size_t accepted = 0;
  std::vector<HostStatus> hosts = {};
};

// One lease, from its arrival until the broker has confirmed its outcome.
//
//   waiting ──► sending ──► settling ──► gone
//      │           └──202──► accepted ──settled by the receiver──► gone
//      └── returned: settling    └──── time limit: settling
class Delivery {
 public:
  enum class State : std::uint8_t { kWaiting, kSending, kAccepted, kSettling };
  // With the token: a job may be leased again while its old request is under way.
  using Key = std::pair<JobId, std::uint64_t>;

  Delivery(Lease given, Moment now, Milliseconds term)
      : lease(std::move(given)),
        received(now),
        deadline(now - lease.age + lease.job.time_limit),
        lease_time(term),
        extend_sent(now),
        extended(now) {}

  Key key() const { return {lease.job.id, lease.token}; }
  LeaseRef ref() const { return {lease.job.id, lease.token}; }

  Lease lease;
  const Moment received;
  const Moment deadline;  // The job's time limit.
  const Milliseconds lease_time;
  State state = State::kWaiting;
  bool lost = false;     // The broker would refuse the outcome.
  bool refused = false;  // It has, as invalid.
  bool stored = false;   // In PendingSettles.

  CallbackUrl url = {};
  http_client::HttpClient::Ticket ticket = 0;
  Moment sent = {};
  Time sent_at = {};

  Moment extend_sent;  // When the newest extend was sent,
  Moment extended;     // and the newest that succeeded.

  std::optional<Settlement> settlement = {};  // While settling.
  Moment settle_at = {};                      // Not before.
  bool settle_sent = false;
};

class DeliveryLoop : public std::enable_shared_from_this<DeliveryLoop> {
 public:
  // kInvalidArgument: the options; otherwise the broker's error to the subscription. With the policy off it takes no
  // leases.
  static Result<std::shared_ptr<DeliveryLoop>> start(CallbackOptions options, std::shared_ptr<Broker> broker,
                                                     std::shared_ptr<SentLeases> leases,
                                                     std::shared_ptr<DeliveryLog> log, DeliveryHooks hooks = {});
  ~DeliveryLoop() { stop(Milliseconds(0)); }

  // Sends nothing from now on and returns what waits. Answers are still taken.
  void begin_stop();
  // begin_stop(), and cancels what is not answered within `grace`: returned if it was not sent. What was sent stays
  // charged, and leased where leases outlive the process, since its receiver may be working; so do accepted deliveries.
  void stop(Milliseconds grace);

  // Runs `done` on the thread of the loop; not at all once it is stopped.
  void status(std::function<void(DeliveryStatus)> done);

 private:
  using Key = Delivery::Key;
  using State = Delivery::State;

  DeliveryLoop(CallbackOptions options, WebhookSigner signer, std::shared_ptr<Broker> broker,
               std::shared_ptr<SentLeases> leases, std::shared_ptr<DeliveryLog> log, DeliveryHooks hooks);
  Status subscribe();

  // Everything from here on runs on the thread of the loop.
  void run();
  void load_pending();
  void on_leases(std::vector<Lease> leases);
  void queue_or_settle(Delivery& delivery);
  void send_waiting(const std::string& key, Host& host);
  bool may_send_to(const CallbackUrl& url) const;
  void send(Delivery& delivery, Host& host);
  void on_answer(const Key& key, const http_client::HttpAnswer& answer);
  void record(const Delivery& delivery, const http_client::HttpAnswer& answer, const DeliveryResult& result);
  void accept(Delivery& delivery);
  void on_settled_by_receiver(const Key& key, const Status& status);
  Outcome failed(const Delivery& delivery, Fault fault, std::string error, Milliseconds not_before);

  void settle(Delivery& delivery, Outcome outcome);
  void send_settlements();
  void on_status(Delivery& delivery, const Status& status);

  void sweep(Moment now);
  void check_deadlines(Delivery& delivery, Moment now);
  void extend(Moment now);
  void on_extended(const std::vector<Key>& keys, Moment asked, const Result<std::vector<Extended>>& answers);
  void lose(Delivery& delivery);
  void return_waiting();
  void finish_until(Moment cancel_at);
  void find_ended_elsewhere();

  Delivery& add(std::unique_ptr<Delivery> delivery);
  void enter(Delivery& delivery, State state);
  void remove(const Key& key);
  Delivery* find(const Key& key);
  std::size_t& count(State state) { return counts_[static_cast<std::size_t>(state)]; }
  std::size_t count(State state) const { return counts_[static_cast<std::size_t>(state)]; }
  void report(const std::string& problem);

  // Makes a callback that posts `call` to this thread, if the loop still exists then.
  template <class Call>
  auto posted(Call call) {
    return [weak = weak_from_this(), call = std::move(call)](auto answer) {
      const auto self = weak.lock();
      if (!self) return;
      auto shared = std::make_shared<decltype(answer)>(std::move(answer));
      self->tasks_.post([loop = self.get(), call, shared] { call(*loop, std::move(*shared)); });
    };
  }

  const CallbackOptions options_;
  const WebhookSigner signer_;
  const std::shared_ptr<DeliveryLog> log_;
  const DeliveryHooks hooks_;
  const bool lasting_leases_;
  const PendingSettles pending_;
  const std::shared_ptr<SentLeases> leases_;
  std::shared_ptr<Broker> broker_;
  platform::TaskQueue tasks_;
  std::atomic<bool> stopping_ = false;  // Nothing is sent any more.
  std::unique_ptr<http_client::HttpClient> client_;

  // Of the thread.
  std::map<Key, std::unique_ptr<Delivery>> deliveries_;
  HostTable hosts_;
  platform::SystemRandom random_;
  std::map<std::string, int> sites_;        // Deliveries under way, by CallbackUrl::site().
  std::array<std::size_t, 4> counts_ = {};  // Of deliveries_, by state.
  std::vector<Key> unsent_;                 // Settlements to be sent.
  bool reported_unconfirmed_ = false;
  bool reported_unstored_ = false;
  Moment next_sweep_ = {};
  bool finishing_ = false;
  Moment cancel_at_ = Moment::max();
  bool cancelled_ = false;
  Moment give_up_at_ = Moment::max();

  std::thread thread_;
};

}  // namespace bide::server
