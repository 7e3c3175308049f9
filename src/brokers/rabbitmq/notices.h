// Notices: what all workers must know about jobs that nobody can reach while they wait in a queue of the server. And
// NoticeBoard: all of them together, as one worker knows them.
//
// A notice is published to a fanout exchange, confirmed, which leads to a stream (the notice log) and to a private queue of
// each worker (its notice queue). A worker first binds its private queue, then reads the stream up to a marker of its own; from
// then on, before it starts any job, it empties its private queue: whatever was confirmed before that is known. So a
// confirmed cancel of a job that has not been handed out is exact, with no clock and no polling in the proof.
//
// One line of text each; a message has one or more of them:
//
//   cancel ID STAMP            jobs with this id and a generation up to STAMP are dropped
//   put-off ID STAMP DUE_MS    the same jobs are not started before DUE
//   purge QUEUE STAMP          messages of that queue published up to STAMP are dropped
//   pause QUEUE STAMP          nothing of that queue is handed out ...
//   resume QUEUE STAMP         ... until now; of both the one with the later stamp counts
//   queue QUEUE STAMP          there is a queue of this name
//   lost ID STAMP PUBLISHED    a running attempt of that message lost its connection, not its process: no crash
//   spare ID STAMP PUBLISHED   the same for one that had not been started: not even an attempt
//   over ID STAMP PUBLISHED    that copy has been replaced or settled: it is dropped, and it alone
//   marker TEXT                for whoever wrote it
//
// STAMP is in microseconds since 1970.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "platform/keyed_hash.h"

namespace bide::brokers::rabbitmq {

struct Notice {
  enum class Kind : std::uint8_t { kCancel, kPutOff, kPurge, kPause, kResume, kQueue, kLost, kSpare, kOver, kMarker };
  Kind kind = Kind::kMarker;
  JobId id = {};
  std::string name = {};  // The queue, or the text of a marker.
  std::int64_t stamp = 0;
  Time due = {};               // kPutOff only.
  std::int64_t published = 0;  // kLost, kSpare, kOver only: which copy of the job.

  std::string to_text() const;
  // Nothing when it is not understood: a newer version may write other kinds.
  static std::optional<Notice> parse(std::string_view text);
  static std::vector<Notice> parse_lines(std::string_view text);
};

// Not safe to share between threads.
class NoticeBoard {
 public:
  void add(const Notice& notice);

  bool is_cancelled(const JobId& id, std::int64_t generation) const;
  std::optional<Time> put_off_until(const JobId& id, std::int64_t generation) const;
  bool is_purged(const std::string& queue, std::int64_t published) const;
  bool is_paused(const std::string& queue) const;
  bool is_over(const JobId& id, std::int64_t published) const;
  // Deliveries of that copy that were no crash: begun, and not begun.
  std::uint32_t lost(const JobId& id, std::int64_t published) const;
  std::uint32_t spared(const JobId& id, std::int64_t published) const;
  bool knows_queue(const std::string& queue) const { return queues_.contains(queue); }
  std::set<std::string> queues() const;
  // Pauses that last and were said before that.
  std::vector<Notice> pauses_before(std::int64_t stamp) const;

  std::size_t size() const;
  // Forgets what is older: the stream has forgotten it too.
  void forget_before(std::int64_t stamp);

 private:
  struct AboutJob {
    std::int64_t cancelled = 0;  // Generations up to this.
    std::int64_t put_off = 0;
    Time due = {};
    std::uint32_t lost = 0;
    std::uint32_t spared = 0;
    std::int64_t interrupted = 0;  // The copy that these two are about.
    std::int64_t last_interruption = 0;
    std::int64_t newest = 0;
    std::vector<std::int64_t> over = {};  // Copies.
  };
  struct AboutQueue {
    std::int64_t purged = 0;
    std::int64_t paused = 0;
    std::int64_t resumed = 0;
    std::int64_t named = 0;
  };

  platform::KeyedMap<JobId, AboutJob> jobs_;
  std::map<std::string, AboutQueue> queues_;
};

}  // namespace bide::brokers::rabbitmq
