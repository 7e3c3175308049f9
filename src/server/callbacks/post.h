// Post: the thread behind a Deliverer, and all that it owns.

#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "http_client/http_client.h"
#include "platform/random.h"
#include "server/callbacks/accepted_book.h"
#include "server/callbacks/sent_leases.h"
#include "server/callbacks/deliverer.h"
#include "server/callbacks/held_delivery.h"
#include "server/callbacks/task_inbox.h"
#include "server/callbacks/webhook_signer.h"

namespace bide::server {

class Deliverer::Post : public std::enable_shared_from_this<Post> {
 public:
  Post(CallbackOptions options, WebhookSigner signer, std::shared_ptr<Broker> broker,
       std::shared_ptr<SentLeases> leases, std::shared_ptr<DeliveryLog> log, DelivererHooks hooks);
  ~Post();

  Status start();
  void begin_stop();
  void stop(Milliseconds grace);
  void status(std::function<void(DelivererStatus)> done);

 private:
  using Key = HeldDelivery::Key;

  // Everything from here on runs on the thread of the post.
  void run();
  void round();
  bool is_finished(Moment now) const;

  void adopt();
  void take(std::vector<Lease> leases);
  void sort_in(HeldDelivery& held);
  void pump(const std::string& key, Host& host);
  void send(HeldDelivery& held, Host& host);
  void take_answer(const Key& key, const http_client::HttpAnswer& answer);
  void record(const HeldDelivery& held, const http_client::HttpAnswer& answer, const Verdict& verdict);
  void accept(HeldDelivery& held);
  void keep(HeldDelivery& held);
  void settled_by_receiver(const Key& key, const Status& status);
  Outcome failed(const HeldDelivery& held, Fault fault, std::string error, Milliseconds not_before);

  void settle(HeldDelivery& held, Outcome outcome);
  void send_settlements();
  void take_statuses(const std::vector<Key>& keys, const Result<std::vector<Status>>& statuses);
  void take_status(HeldDelivery& held, const Status& status);

  void sweep(Moment now);
  void look_after(HeldDelivery& held, Moment now);
  void extend(Moment now);
  void take_extensions(const std::vector<Key>& keys, Moment asked, const Result<std::vector<Extended>>& answers);
  void lose(HeldDelivery& held);
  void forget(const Key& key);

  bool has_place(const CallbackUrl& url) const;
  void leave_place(const CallbackUrl& url);
  void give_back_waiting();
  void finish_until(Moment cancel_at);
  void adjust_credit();
  void look_for_surplus();
  HeldDelivery& hold(std::unique_ptr<HeldDelivery> held);
  void enter(HeldDelivery& held, HeldDelivery::State state);
  std::size_t count(HeldDelivery::State state) const { return counts_[static_cast<std::size_t>(state)]; }
  HeldDelivery* find(const Key& key);
  void report(const std::string& problem);

  // A completion for the broker or the client: runs `call` on the thread of the post, if there is one by then.
  template <class Call>
  auto later(Call call) {
    return [weak = weak_from_this(), call = std::move(call)](auto answer) {
      const auto self = weak.lock();
      if (!self) return;
      self->inbox_.post([post = self.get(), call, answer = std::move(answer)] { call(*post, answer); });
    };
  }

  const CallbackOptions options_;
  const WebhookSigner signer_;
  const std::shared_ptr<DeliveryLog> log_;
  const DelivererHooks hooks_;
  const bool lasting_leases_;
  const AcceptedBook book_;
  const std::shared_ptr<SentLeases> leases_;
  std::shared_ptr<Broker> broker_;
  TaskInbox inbox_;
  std::atomic<bool> stopping_ = false;  // Nothing is sent any more.
  std::unique_ptr<http_client::HttpClient> client_;

  // Of the thread.
  std::map<Key, std::unique_ptr<HeldDelivery>> held_;
  HostBook hosts_;
  platform::SystemRandom random_;
  std::map<std::string, int> sites_;  // Deliveries under way, by CallbackUrl::site().
  std::array<std::size_t, 4> counts_ = {};  // Of those held, by state.
  std::vector<Key> unsent_;  // Settlements that the broker has not been given.
  bool reported_ = false;    // That the broker does not confirm,
  bool unkept_ = false;      // and that nothing can be kept.
  Moment next_sweep_ = {};
  bool finishing_ = false;
  Moment cancel_at_ = Moment::max();
  bool cancelled_ = false;
  Moment give_up_at_ = Moment::max();

  std::thread thread_;
};

}  // namespace bide::server
