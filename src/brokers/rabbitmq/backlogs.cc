#include "brokers/rabbitmq/backlogs.h"

#include <algorithm>

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::milliseconds;

// A count is believed for so long when it leaves no room.
constexpr milliseconds kFresh{250};
// All publishers together are not expected to send more. A queue far from its limit need not be counted often.
constexpr std::uint64_t kMostPerMs = 100;
constexpr milliseconds kAskSoonest{1000};
constexpr milliseconds kAskLatest{60'000};

}  // namespace

Backlogs::Room Backlogs::room(const std::string& queue, Moment now) {
  if (limit_ == 0) return Room::kSome;
  Backlog& backlog = backlogs_[queue];
  if (backlog.known && backlog.messages + backlog.sent < limit_) {
    // Ahead of the limit, so that nobody has to wait for the answer.
    if (now >= backlog.ask_at || backlog.sent > (limit_ - backlog.messages) / 2) ask(queue, backlog);
    return Room::kSome;
  }
  if (now - backlog.counted_at < kFresh && backlog.messages >= limit_) return Room::kNone;
  ask(queue, backlog);
  return Room::kUnknown;
}

void Backlogs::sent(const std::string& queue) {
  if (limit_ == 0) return;
  backlogs_[queue].sent += 1;
}

void Backlogs::ask(const std::string& queue, Backlog& backlog) {
  if (backlog.asked) return;
  backlog.asked = true;
  questions_.push_back(queue);
}

std::optional<std::string> Backlogs::next_question() {
  if (questions_.empty()) return std::nullopt;
  std::string queue = std::move(questions_.front());
  questions_.pop_front();
  return queue;
}

void Backlogs::counted(const std::string& queue, std::uint64_t messages, Moment now) {
  Backlog& backlog = backlogs_[queue];
  backlog.asked = false;
  backlog.known = true;
  backlog.messages = messages;
  // What was sent while the server counted is perhaps not among them; the next count has it.
  backlog.sent = 0;
  backlog.counted_at = now;
  const std::uint64_t left = messages < limit_ ? limit_ - messages : 0;
  const milliseconds pause(static_cast<std::int64_t>(std::min<std::uint64_t>(left / kMostPerMs, kAskLatest.count())));
  backlog.ask_at = now + std::max(pause, kAskSoonest);
}

}  // namespace bide::brokers::rabbitmq
