#include "server/http/response.h"

#include "server/http/problem_response.h"

namespace bide::server {

void ReplyTarget::give_up() {
  send(to_response({.status = 500,
                    .code = "internal",
                    .detail = "the request was given up without an answer; it may have been carried out"}));
}

Reply::~Reply() {
  if (target_) target_->give_up();
}

void Reply::send(Response response) {
  if (const auto target = std::exchange(target_, nullptr)) target->send(std::move(response));
}

std::shared_ptr<Stream> Reply::stream(Response head) {
  const auto target = std::exchange(target_, nullptr);
  return target ? target->stream(std::move(head)) : nullptr;
}

void Reply::on_gone(std::function<void()> gone) {
  if (target_) target_->on_gone(std::move(gone));
}

}  // namespace bide::server
