#include "server/http/response.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace bide::server {

Response to_response(const wire::Problem& problem) {
  Response response{.status = problem.status,
                    .content_type = std::string(wire::kProblemContentType),
                    .body = wire::problem_json(problem)};
  if (problem.retry_after.count() > 0) {
    // In whole seconds, and never earlier than was said.
    const auto seconds = std::max<std::int64_t>(1, (problem.retry_after.count() + 999) / 1000);
    response.fields.emplace_back("Retry-After", std::to_string(seconds));
  }
  if (problem.status == 401) response.fields.emplace_back("WWW-Authenticate", "Bearer realm=\"bide\"");
  return response;
}

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
