// WatchDesk: requests that wait until a job is done or dead. They share one watch at the broker for each job, which is
// given up with the last of them.

#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "bide/inspector.h"
#include "platform/keyed_hash.h"
#include "server/api/alarm.h"

namespace bide::server {

class WatchDesk : public std::enable_shared_from_this<WatchDesk> {
 public:
  static constexpr std::size_t kMostJobs = 10'000;

  struct Wait;
  // Nothing: the job was not finished in time. Called once, on any thread; not when the wait was given up.
  using Answer = std::function<void(std::optional<Result<JobInfo>>)>;

  // The inspector must outlive the desk. `poke`: tick() wants to be called soon.
  WatchDesk(Inspector& inspector, std::function<void()> poke);

  std::shared_ptr<Wait> make_wait(Answer answer) const;
  // kOverloaded: too many jobs are being watched.
  void wait(const std::shared_ptr<Wait>& wait, const JobId& id, Moment until);
  void give_up(const std::shared_ptr<Wait>& wait);

  std::optional<Moment> tick(Moment now);
  void stop();  // Nobody waits any longer.

  std::size_t watched() const;  // Jobs that somebody waits for.
  std::size_t waiting() const;

 private:
  void finished(const JobId& id, std::uint64_t watch, const Result<JobInfo>& info);
  // What to call without the lock, when nobody waits for the job any more.
  [[nodiscard]] GiveUp remove(const std::shared_ptr<Wait>& wait);

  Inspector& inspector_;
  const std::function<void()> poke_;

  mutable std::mutex mutex_;  // Guards everything below.
  bool stopped_ = false;
  struct Watched {
    std::uint64_t number = 0;  // Of this watch: the job may be watched again after it.
    GiveUp give_up;            // Empty while it is being made.
    std::list<std::shared_ptr<Wait>> waits;  // Never empty.
  };
  std::uint64_t last_watch_ = 0;
  platform::KeyedMap<JobId, Watched> watched_;
  std::multimap<Moment, std::shared_ptr<Wait>> deadlines_;
  Moment armed_ = Moment::max();
};

}  // namespace bide::server
