#include "server/callbacks/deliverer.h"

#include <utility>

#include "server/callbacks/post.h"

namespace bide::server {

Result<std::unique_ptr<Deliverer>> Deliverer::start(CallbackOptions options, std::shared_ptr<Broker> broker,
                                                    std::shared_ptr<SentLeases> leases,
                                                    std::shared_ptr<DeliveryLog> log, DelivererHooks hooks) {
  if (Status valid = validate(options); !valid) return valid.error();
  auto signer = WebhookSigner::make(options.secrets, options.secrets_by_host);
  if (!signer) return signer.error();
  auto post = std::make_shared<Post>(std::move(options), std::move(*signer), std::move(broker), std::move(leases),
                                     std::move(log), std::move(hooks));
  if (Status started = post->start(); !started) {
    post->stop(Milliseconds(0));
    return started.error();
  }
  return std::unique_ptr<Deliverer>(new Deliverer(std::move(post)));
}

Deliverer::~Deliverer() { post_->stop(Milliseconds(0)); }

void Deliverer::begin_stop() { post_->begin_stop(); }

void Deliverer::stop(Milliseconds grace) { post_->stop(grace); }

void Deliverer::status(std::function<void(DelivererStatus)> done) const { post_->status(std::move(done)); }

}  // namespace bide::server
