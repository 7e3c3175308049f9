// Backlogs: how many jobs are ready in each queue, as far as a publisher knows, and so whether one more may be offered.
//
// The limit is kept by those who offer, and not by the queue on the server: a queue that refuses what becomes due holds up
// the delay queues in front of it, which all others share. So it is approximate. Several publishers together may exceed
// it by what they send between two counts, and jobs that were delayed when there was room arrive in any case.
//
//   room(queue)  ->  next_question()  ->  (the server is asked)  ->  counted(queue, messages)
//
// Used by one thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace bide::brokers::rabbitmq {

class Backlogs {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  enum class Room : std::uint8_t {
    kSome,
    kNone,
    kUnknown,  // It was never counted, or was full then: ask again after the next count.
  };

  explicit Backlogs(std::uint64_t limit) : limit_(limit) {}  // 0: none.

  // Asking makes questions, long before the limit is reached.
  Room room(const std::string& queue, Moment now);
  // One more is on its way there.
  void sent(const std::string& queue);

  // A queue that should be counted. It is not named again before it is known what became of the question.
  std::optional<std::string> next_question();
  void counted(const std::string& queue, std::uint64_t messages, Moment now);
  void not_counted(const std::string& queue) { backlogs_[queue].asked = false; }  // There will be no answer.

 private:
  struct Backlog {
    std::uint64_t messages = 0;  // At the last count.
    std::uint64_t sent = 0;      // Since then, by this publisher.
    Moment counted_at = {};
    Moment ask_at = {};  // Others send as well.
    bool asked = false;
    bool known = false;
  };

  void ask(const std::string& queue, Backlog& backlog);

  const std::uint64_t limit_;
  std::map<std::string, Backlog> backlogs_;
  std::deque<std::string> questions_;
};

}  // namespace bide::brokers::rabbitmq
