// OrderedEnqueue: jobs that wait for each other, sent to a server so that none arrives before those it waits for: one request
// after the other, each with as many as fit.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "brokers/remote/api_caller.h"
#include "wire/batch_json.h"

namespace bide::brokers::remote {

class OrderedEnqueue : public std::enable_shared_from_this<OrderedEnqueue> {
 public:
  using Known = std::vector<std::optional<Result<Enqueued>>>;
  using Done = std::function<void(std::vector<Result<Enqueued>>)>;

  // `items` are JSON; for what is known already nothing is sent.
  OrderedEnqueue(ApiCaller& caller, bool repeatable, std::vector<std::string> items, Known known, Done done)
      : caller_(caller), repeatable_(repeatable), items_(std::move(items)), answers_(std::move(known)), done_(std::move(done)) {}

  void send() {
    std::string body = "{\"jobs\":[";
    std::vector<std::size_t> sent;
    for (; next_ < items_.size() && sent.size() < kItems; ++next_) {
      if (answers_[next_]) continue;
      if (!sent.empty() && body.size() + items_[next_].size() > kBytes) break;
      body += (sent.empty() ? "" : ",") + std::exchange(items_[next_], {});
      sent.push_back(next_);
    }
    if (sent.empty()) return finish();
    body += "]}";
    caller_.call({.method = "POST", .path = "/v1/jobs", .body = std::move(body), .repeatable = repeatable_},
                 [self = shared_from_this(), sent](const Result<std::string>& answer) { self->take(sent, answer); });
  }

 private:
  static constexpr std::size_t kItems = 10'000;
  static constexpr std::size_t kBytes = 8 * 1024 * 1024;

  void take(const std::vector<std::size_t>& sent, const Result<std::string>& answer) {
    auto read = answer ? wire::read_batch_results(*answer) : Result<std::vector<Result<Enqueued>>>(answer.error());
    const bool unreadable = answer && (!read || read->size() != sent.size());
    if (unreadable) read = Error{ErrorCode::kUnconfirmed, "the server's answer cannot be read, or is for another number of jobs"};
    for (std::size_t i = 0; i < sent.size(); ++i) answers_[sent[i]] = read ? (*read)[i] : Result<Enqueued>(read.error());
    if (read) return send();
    // Those behind may wait for these.
    for (auto& each : answers_) {
      if (!each) each = Error{ErrorCode::kUnavailable, "not sent, because the jobs before failed: " + read.error().message};
    }
    finish();
  }

  void finish() {
    std::vector<Result<Enqueued>> results;
    results.reserve(answers_.size());
    for (auto& each : answers_) results.push_back(std::move(*each));
    done_(std::move(results));
  }

  ApiCaller& caller_;  // Answers everything before it is gone.
  const bool repeatable_;
  std::vector<std::string> items_;
  Known answers_;
  const Done done_;
  std::size_t next_ = 0;
};

}  // namespace bide::brokers::remote
