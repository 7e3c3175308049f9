// Coalescer: calls that wait become one request. A call goes out at once while few requests are under way; those that
// come meanwhile are collected and go together when one of them is answered, or when they fill a request. So a single
// call has no delay, and many share what a request costs.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "brokers/remote/api_caller.h"
#include "platform/fatal.h"

namespace bide::brokers::remote {

struct CoalescerOptions {
  std::string path = {};
  std::string list = {};  // The name of the array in the request: {"jobs":[...]}
  bool repeatable = true;
  int under_way = 4;                    // Requests at a time, as long as they are not full.
  int most_under_way = 4;               // Full ones.
  std::size_t items = 1000;             // Of one request.
  std::size_t bytes = 4 * 1024 * 1024;  // Of one request, unless a single item has more.
};

// Answer is what the server says about one item. Safe to use from any thread; must outlive the caller's last
// completion. Caller is an ApiCaller, or what stands for it in a test.
template <class Answer, class Caller = ApiCaller>
class Coalescer {
 public:
  using Done = std::function<void(std::vector<Answer>)>;
  using Read = std::function<Result<std::vector<Answer>>(std::string_view body)>;

  // `refused` makes the answer for each item of a request that failed as a whole.
  Coalescer(Caller& caller, CoalescerOptions options, Read read, std::function<Answer(const Error&)> refused)
      : caller_(caller), options_(std::move(options)), read_(std::move(read)), refused_(std::move(refused)) {}

  // `items` are JSON. An answer that is there already is given as it is and nothing is sent for its item. `done` runs
  // once.
  void add(std::vector<std::string> items, std::vector<std::optional<Answer>> known, Done done) {
    auto group = std::make_shared<Group>();
    group->answers = std::move(known);
    group->answers.resize(items.size());
    group->done = std::move(done);
    bool complete = false;
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (group->answers[i]) continue;
        group->missing += 1;
        waiting_bytes_ += items[i].size();
        unsent_bytes_ += items[i].size();
        waiting_.push_back({group, i, std::move(items[i])});
      }
      complete = group->missing == 0;
    }
    // Without the lock the group belongs to whoever has its last answer.
    if (complete) return finish(*group);
    pump();
  }

  std::size_t waiting_bytes() const {
    const std::lock_guard lock(mutex_);
    return waiting_bytes_;
  }

  // True when nothing is left to be answered.
  bool wait_until_idle(Milliseconds at_most) {
    std::unique_lock lock(mutex_);
    return idle_.wait_for(lock, at_most, [this] { return waiting_.empty() && under_way_ == 0; });
  }

 private:
  struct Group {
    std::vector<std::optional<Answer>> answers;
    Done done;
    std::size_t missing = 0;
  };
  struct Item {
    std::shared_ptr<Group> group;
    std::size_t index = 0;
    std::string json;
  };
  using Items = std::shared_ptr<std::vector<Item>>;

  void pump() {
    for (;;) {
      const Items items = std::make_shared<std::vector<Item>>();
      std::size_t bytes = 0;
      {
        const std::lock_guard lock(mutex_);
        const bool full = waiting_.size() >= options_.items || unsent_bytes_ >= options_.bytes;
        if (waiting_.empty() || under_way_ >= (full ? options_.most_under_way : options_.under_way)) return;
        do {
          bytes += waiting_.front().json.size() + 1;
          unsent_bytes_ -= waiting_.front().json.size();
          items->push_back(std::move(waiting_.front()));
          waiting_.pop_front();
        } while (!waiting_.empty() && items->size() < options_.items &&
                 bytes + waiting_.front().json.size() <= options_.bytes);
        under_way_ += 1;
      }
      std::string body;
      body.reserve(bytes + options_.list.size() + 8);
      body += "{\"" + options_.list + "\":[";
      for (std::size_t i = 0; i < items->size(); ++i) {
        if (i > 0) body += ',';
        body += (*items)[i].json;
      }
      body += "]}";
      const void* const outer = std::exchange(pumping, this);
      caller_.call(
          {.method = "POST", .path = options_.path, .body = std::move(body), .repeatable = options_.repeatable},
          [this, items, bytes](Result<std::string> answer) { take(*items, bytes, std::move(answer)); });
      pumping = outer;
    }
  }

  void take(std::vector<Item>& items, std::size_t bytes, Result<std::string> answer) {
    Result<std::vector<Answer>> answers = answer ? read_(*answer) : Result<std::vector<Answer>>(answer.error());
    // There was an answer, which cannot be read or is too large.
    const bool unknown = !answers && (answer || answers.error().code == ErrorCode::kIoError);
    if (unknown) answers = Error{ErrorCode::kUnconfirmed, answers.error().message};
    if (answers && answers->size() != items.size()) {
      answers =
          Error{ErrorCode::kUnconfirmed, "the server answered for another number of items than it was asked about"};
    }
    std::vector<std::shared_ptr<Group>> finished;
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < items.size(); ++i) {
        Group& group = *items[i].group;
        platform::require(group.missing > 0, "a call waits for as many answers as it has items");
        group.answers[items[i].index].emplace(answers ? std::move((*answers)[i]) : refused_(answers.error()));
        if (--group.missing == 0) finished.push_back(items[i].group);
      }
      platform::require(waiting_bytes_ >= bytes - items.size(), "what is answered was waiting");
      waiting_bytes_ -= bytes - items.size();
    }
    for (const auto& group : finished) finish(*group);
    {
      const std::lock_guard lock(mutex_);
      under_way_ -= 1;
      if (waiting_.empty() && under_way_ == 0) idle_.notify_all();
    }
    // A caller that answers at once, because it is closed, is called from pump(), which goes on by itself.
    if (pumping != this) pump();
  }

  static void finish(Group& group) {
    platform::require(group.done != nullptr, "a completion runs once");
    const Done done = std::exchange(group.done, nullptr);
    std::vector<Answer> answers;
    answers.reserve(group.answers.size());
    for (auto& answer : group.answers) answers.push_back(std::move(*answer));
    done(std::move(answers));
  }

  static inline thread_local const void* pumping = nullptr;  // Which of them this thread is sending for.

  Caller& caller_;
  const CoalescerOptions options_;
  const Read read_;
  const std::function<Answer(const Error&)> refused_;

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable idle_;
  std::deque<Item> waiting_;
  std::size_t waiting_bytes_ = 0;  // With those under way.
  std::size_t unsent_bytes_ = 0;   // Without.
  int under_way_ = 0;
};

}  // namespace bide::brokers::remote
