// Deliverer: delivers the jobs of the pushed queues to their callbacks. To the broker it is a worker like any other: it
// takes leases, keeps them alive, and settles.
//
//   broker ──leases──► waiting by host ──► HttpClient ──► receiver
//     ▲                                        │ answer
//     └──────────── settlements ◄── judge() ◄──┘
//
// One thread owns everything; what others want of it goes through its inbox. A job that cannot be sent soon, because
// its host is paused or has enough, is given back uncharged, so that a slow host does not hold up the others.
//
//   a job without a callback          given back with a note, again and again: it waits for somebody to look at it
//   a URL that the policy forbids     dead, as rejected
//   answered 202                      held, with its lease kept alive, until the receiver settles it with the id and
//                                     the token it was given, or its time limit passes; by the next process too

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/broker.h"
#include "server/callbacks/sent_leases.h"
#include "server/callbacks/callback_options.h"
#include "server/callbacks/delivery_log.h"
#include "server/callbacks/host_book.h"
#include "server/callbacks/verdict.h"

namespace bide::server {

struct DelivererHooks {
  // Both on any thread; neither may block.
  std::function<void(const DeliveryRecord&)> on_delivery = nullptr;  // For metrics and logs.
  std::function<void(std::string_view)> on_problem = nullptr;        // A line: the broker does not answer ...
};

struct DelivererStatus {
  std::size_t waiting = 0;
  std::size_t sending = 0;
  std::size_t accepted = 0;
  std::vector<HostStatus> hosts = {};
};

class Deliverer {
 public:
  // kInvalidArgument: the options. Otherwise what the broker says to the subscription. With the policy off it takes
  // nothing.
  static Result<std::unique_ptr<Deliverer>> start(CallbackOptions options, std::shared_ptr<Broker> broker,
                                                  std::shared_ptr<SentLeases> leases,
                                                  std::shared_ptr<DeliveryLog> log, DelivererHooks hooks = {});
  ~Deliverer();  // Stops without grace, unless stopped.

  // From now on nothing is sent; what waits is given back. Answers to what was sent are still taken.
  void begin_stop();
  // begin_stop(), and what is not answered within `grace` is called off. What was not sent by then is given back. What was
  // sent stays charged, and leased where leases last: its receiver may be at work. So do accepted deliveries.
  void stop(Milliseconds grace);

  // Answers on the deliverer's thread; not at all once it is stopped.
  void status(std::function<void(DelivererStatus)> done) const;

 private:
  class Post;
  explicit Deliverer(std::shared_ptr<Post> post) : post_(std::move(post)) {}

  const std::shared_ptr<Post> post_;
};

}  // namespace bide::server
