#include "server/callbacks/callback_service.h"

#include <utility>

#include "server/callbacks/completing_broker.h"

namespace bide::server {

CallbackService::CallbackService(CallbackOptions options, std::shared_ptr<ServerBroker> broker,
                                 std::shared_ptr<Inspector> inspector)
    : options_(std::move(options)),
      inspector_(std::move(inspector)),
      broker_(std::move(broker)),
      log_(std::make_shared<DeliveryLog>(options_.log_entries, options_.log_bytes)) {}

Result<std::unique_ptr<CallbackService>> CallbackService::start(CallbackOptions options, std::shared_ptr<Broker> broker,
                                                                std::shared_ptr<Inspector> inspector,
                                                                DeliveryHooks hooks) {
  if (Status valid = validate(options); !valid) return valid.error();
  if (!broker->capabilities().completions) broker = std::make_shared<CompletingBroker>(std::move(broker));
  const auto leases = std::make_shared<SentLeases>();
  auto served = std::make_shared<ServerBroker>(std::move(broker), leases, options.queues.front());
  std::unique_ptr<CallbackService> service(
      new CallbackService(std::move(options), std::move(served), std::move(inspector)));
  auto loop = DeliveryLoop::start(service->options_, service->broker_, leases, service->log_, std::move(hooks));
  if (!loop) return loop.error();
  service->loop_ = std::move(*loop);
  return service;
}

CallbackService::~CallbackService() {
  if (loop_) loop_->stop(Milliseconds(0));
  broker_->close();
}

}  // namespace bide::server
