// CallbackService: everything about callbacks, put together for the server.
//
//   auto callbacks = CallbackService::start(options, broker, inspector, hooks);
//   Routes all = api_routes((*callbacks)->broker(), ...);      // What is settled through this broker tells of its end.
//   append(all, (*callbacks)->routes());
//   ...
//   (*callbacks)->begin_stop();                                // No delivery starts from now on.
//   (*callbacks)->stop(grace);                                 // Before the broker goes, after the listener.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "server/callbacks/callback_options.h"
#include "server/callbacks/completing_broker.h"
#include "server/callbacks/deliverer.h"
#include "server/callbacks/delivery_log.h"
#include "server/callbacks/server_broker.h"
#include "server/http/route.h"
#include "wire/problem.h"

namespace bide::server {

class CallbackService {
 public:
  // The inspector may be null. kInvalidArgument: the options; otherwise what the broker says.
  static Result<std::unique_ptr<CallbackService>> start(CallbackOptions options, std::shared_ptr<Broker> broker,
                                                        std::shared_ptr<Inspector> inspector,
                                                        DelivererHooks hooks = {});

  // Lets go of the broker: whoever still has broker() is answered kUnavailable.
  ~CallbackService();

  // To be used by everybody in place of the one that was given.
  std::shared_ptr<Broker> broker() const { return broker_; }
  const CallbackOptions& options() const { return options_; }
  Routes routes() const;
  void begin_stop() { deliverer_->begin_stop(); }
  void stop(Milliseconds grace) { deliverer_->stop(grace); }

 private:
  CallbackService(CallbackOptions options, std::shared_ptr<ServerBroker> broker, std::shared_ptr<Inspector> inspector);

  const CallbackOptions options_;
  const std::shared_ptr<Inspector> inspector_;
  const std::shared_ptr<ServerBroker> broker_;
  const std::shared_ptr<DeliveryLog> log_;
  std::shared_ptr<Deliverer> deliverer_;
};

}  // namespace bide::server
