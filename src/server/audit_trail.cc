#include "server/audit_trail.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "wire/json_reader.h"

namespace bide::server {

namespace {

constexpr std::size_t kShownIds = 10;
constexpr std::size_t kShownFilter = 200;

bool is_logged(const Route& route) {
  if (route.method == Method::kGet || route.method == Method::kHead) return false;
  const bool enqueues = route.method == Method::kPost && route.pattern == "/v1/jobs";
  return (route.scope == Scope::kAdmin || route.scope == Scope::kWrite) && !enqueues;
}

// What the body chooses: its ids, or its filter. Of the changes of one job, which fields: not what they hold.
std::string chosen_by(const Request& request) {
  std::string text;
  const std::string_view body = request.body;
  const bool is_edit = request.method == Method::kPatch;
  wire::JsonReader in(body);
  in.object();
  while (const auto name = in.field()) {
    if (*name == "ids") {
      std::size_t count = 0;
      std::string ids;
      in.array();
      while (in.element()) {
        const std::string_view id = in.string();
        if (count++ < kShownIds) ids.append(count == 1 ? ": " : ", ").append(id.substr(0, 64));
      }
      text = std::to_string(count) + " jobs" + ids + (count > kShownIds ? " ..." : "");
    } else if (*name == "filter") {
      text = "filter " + std::string(in.raw().substr(0, kShownFilter));
    } else if (is_edit && text.size() < kShownFilter) {
      text += (text.empty() ? "" : ", ") + std::string(name->substr(0, 64));
      in.raw();
    } else {
      in.raw();
    }
  }
  return in.ok() ? text : std::string();
}

// The counts in the answer.
std::string result_of(const Response& response) {
  std::string text;
  if (response.status >= 300) return text;
  wire::JsonReader in(response.body);
  in.object();
  while (const auto name = in.field()) {
    const std::string key(*name);
    const bool is_count = key == "matched" || key == "succeeded" || key == "failed" || key == "removed";
    const std::string_view value = in.raw();
    if (is_count) text += (text.empty() ? "" : ", ") + key + " " + std::string(value.substr(0, 20));
  }
  return in.ok() ? text : std::string();
}

// Between the route and the connection.
class LoggedReply : public ReplyTarget {
 public:
  LoggedReply(Reply reply, const Request& request, const Log& log)
      : log_(log),
        caller_(request.caller.name),
        peer_(request.peer),
        method_(request.method),
        path_(request.path),
        chosen_(chosen_by(request)),
        reply_(std::move(reply)) {}

  void send(Response response) override {
    log_.info("action", {{"caller", caller_},
                         {"peer", peer_},
                         {"method", to_string(method_)},
                         {"path", path_},
                         {"status", response.status},
                         {"on", chosen_},
                         {"result", result_of(response)}});
    reply_.send(std::move(response));
  }
  std::shared_ptr<Stream> stream(Response head) override { return reply_.stream(std::move(head)); }
  void on_gone(std::function<void()> gone) override { reply_.on_gone(std::move(gone)); }
  bool reserve(std::uint64_t bytes) override { return reply_.reserve(bytes); }
  // Whoever made the reply knows whether somebody is still there to be told.
  void give_up() override { const Reply unanswered = std::move(reply_); }

 private:
  const Log& log_;
  const std::string caller_;
  const std::string peer_;
  const Method method_;
  const std::string path_;
  const std::string chosen_;
  Reply reply_;
};

}  // namespace

Routes with_audit_trail(Routes routes, const Log& log) {
  for (Route& route : routes) {
    if (!is_logged(route)) continue;
    route.answer = [answer = std::move(route.answer), &log](Request request, Reply reply) {
      auto logged = std::make_shared<LoggedReply>(std::move(reply), request, log);
      answer(std::move(request), Reply(std::move(logged)));
    };
  }
  return routes;
}

}  // namespace bide::server
