// Watcher: is told by the server what other processes do. It wakes the granter, and answers those who wait for the end of a
// job.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "brokers/database/granter.h"
#include "brokers/database/job_store.h"
#include "brokers/database/lane.h"

namespace bide::brokers::database {

// Safe to share between threads.
class Watcher {
 public:
  // Asks for the state of a watched job again and calls examined() with it; on another lane.
  using Examine = std::function<void(JobId)>;

  Watcher(JobStore& store, Granter& granter, Examine examine);

  // From now on the server is listened to.
  void start() { lane_.wake(); }
  std::uint64_t add(JobId id, Completion<JobInfo> done);
  void give_up(JobId id, std::uint64_t number);
  // What became of it, if it has ended: whoever waits for it is answered.
  void examined(JobId id, const Result<JobInfo>& info);
  bool is_watched(JobId id);
  // All that are left are answered with kUnavailable.
  void stop();

 private:
  std::optional<Moment> step(Lane& lane);
  void look_everywhere();

  Granter& granter_;
  const Examine examine_;
  std::uint64_t listening_on_ = 0;  // The session, by number. Of the lane.

  std::mutex mutex_;  // Guards everything below.
  std::uint64_t last_number_ = 0;
  std::map<JobId, std::map<std::uint64_t, Completion<JobInfo>>> watches_;

  Lane lane_;
};

}  // namespace bide::brokers::database
