// NoticeLog: all notices as one worker knows them (see notices.h). After connecting it reads the log (a stream) up to a
// marker of its own; from then on it empties its notice queue whenever something is to be checked.
//
// Belongs to the consumer's thread, and to one connection at a time.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/notices.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/stamps.h"
#include "brokers/rabbitmq/timers.h"
#include "brokers/rabbitmq/topology.h"
#include "platform/random.h"
#include "platform/task_queue.h"

namespace bide::brokers::rabbitmq {

class NoticeLog {
 public:
  static constexpr ChannelNumber kQueueChannel = 1;  // The notice queue of this worker.
  static constexpr ChannelNumber kLogChannel = 2;    // The stream, while it is read.

  using Question = std::function<void(Result<const NoticeBoard*>)>;

  // Without `settings.notices` there are none, and nothing is read.
  NoticeLog(const Settings& settings, Publisher& publisher, Stamps& stamps, Timers& timers,
            std::shared_ptr<platform::PollableTaskQueue> tasks);

  const NoticeBoard& board() const { return board_; }
  // All that was confirmed before the connection is known.
  bool is_read() const { return read_; }

  Status start(Connection& connection);
  // The connection is gone.
  void stop(const Error& error);
  // Whoever asks is answered with that.
  void refuse_questions(const Error& error);

  // Events of the two channels. An error: the connection is gone.
  Status take(const Delivery& delivery);
  void log_is_closed();

  // True when the next read may begin: one at a time, after the log is read.
  bool may_read() const { return read_ && !reading_; }
  // True when somebody asks, or when it is time to look for pauses and cancels of what runs.
  bool wants_read(bool working) const;
  // Empties the notice queue. queue_is_empty() is called at the end, by the caller's event loop.
  Status begin_read();
  // Answers the questions that were asked before the read began.
  void queue_is_empty();

  // Answered by the next read.
  void ask(Question question) { questions_.push_back(std::move(question)); }
  // It is confirmed: it counts from now on.
  void add(const Notice& notice);
  // Published without an answer; known here at once.
  void write(std::vector<Notice> notices);

 private:
  Status read_log();
  Status take_logged(const Delivery& delivery);
  void write_marker();
  void watch_silence(const std::string& written);
  void repeat_old_pauses();

  const Settings& settings_;
  const Names names_;
  Publisher& publisher_;
  Stamps& stamps_;
  Timers& timers_;
  const std::shared_ptr<platform::PollableTaskQueue> tasks_;
  platform::SystemRandom random_;

  NoticeBoard board_;
  Connection* connection_ = nullptr;
  bool read_ = false;
  std::string queue_;
  std::string marker_;
  std::int64_t next_offset_ = -1;  // Of the stream; -1: from the beginning.
  std::uint64_t unacked_ = 0;
  bool log_open_ = false;
  Steady last_logged_ = {};
  bool reading_ = false;  // A get is under way.
  Steady last_read_ = {};
  Steady next_repeat_ = {};  // Of pauses that the stream is about to forget.
  std::int64_t last_repeat_us_ = 0;
  std::vector<Question> questions_;  // Answered by the next read ...
  std::vector<Question> asked_;      // ... or by the one under way.
};

}  // namespace bide::brokers::rabbitmq
