// CallbackService: the delivery of callbacks, its routes, and the broker that everybody else must use.
//
//   auto callbacks = CallbackService::start(options, broker, inspector, hooks);
//   Api api({.broker = (*callbacks)->broker(), ...});
//   server.add(api.routes((*callbacks)->routes()));
//   ...
//   (*callbacks)->begin_stop();   // No delivery starts from now on.
//   (*callbacks)->stop(grace);    // After the listener, before the broker.

#pragma once

#include <memory>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "server/callbacks/callback_options.h"
#include "server/callbacks/delivery_log.h"
#include "server/callbacks/delivery_loop.h"
#include "server/callbacks/server_broker.h"
#include "server/http/route.h"

namespace bide::server {

class CallbackService {
 public:
  // The inspector may be null. kInvalidArgument: the options; otherwise the broker's error.
  static Result<std::unique_ptr<CallbackService>> start(CallbackOptions options, std::shared_ptr<Broker> broker,
                                                        std::shared_ptr<Inspector> inspector,
                                                        DeliveryHooks hooks = {});

  // Releases the broker: broker() answers kUnavailable from now on.
  ~CallbackService();

  // To be used in place of the one that was given.
  std::shared_ptr<Broker> broker() const { return broker_; }
  const CallbackOptions& options() const { return options_; }
  // GET /v1/callbacks and POST /v1/callbacks/{id}/replay. They share the delivery loop.
  Routes routes() const;
  void begin_stop() { loop_->begin_stop(); }
  void stop(Milliseconds grace) { loop_->stop(grace); }

 private:
  CallbackService(CallbackOptions options, std::shared_ptr<ServerBroker> broker, std::shared_ptr<Inspector> inspector);

  const CallbackOptions options_;
  const std::shared_ptr<Inspector> inspector_;
  const std::shared_ptr<ServerBroker> broker_;
  const std::shared_ptr<DeliveryLog> log_;
  std::shared_ptr<DeliveryLoop> loop_;
};

}  // namespace bide::server
