// ResultWaiters: requests that wait until a job is done or dead. Those for the same job share one watch at the broker,
// which ends with the last of them.

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
#include "platform/timer_thread.h"

namespace bide::server {

using platform::Moment;

class ResultWaiters : public std::enable_shared_from_this<ResultWaiters> {
 public:
  static constexpr std::size_t kMostJobs = 10'000;

  struct Waiter;
  // Nothing: the job was not finished in time. Called once, on any thread; not after cancel().
  using Answer = std::function<void(std::optional<Result<JobInfo>>)>;

  // The inspector must outlive this. `wake`: tick() is due earlier than it said.
  ResultWaiters(Inspector& inspector, std::function<void()> wake);

  std::shared_ptr<Waiter> make_waiter(Answer answer) const;
  // kOverloaded: too many jobs are watched.
  void wait(const std::shared_ptr<Waiter>& waiter, const JobId& id, Moment until);
  void cancel(const std::shared_ptr<Waiter>& waiter);

  std::optional<Moment> tick(Moment now);
  void stop();  // Answers all, with nothing.

  std::size_t watched() const;  // Jobs.
  std::size_t waiting() const;

 private:
  void finished(const JobId& id, std::uint64_t watch, const Result<JobInfo>& info);
  // With the lock held. To be called without it when it is not null: it ends the watch.
  [[nodiscard]] GiveUp remove(const std::shared_ptr<Waiter>& waiter);

  Inspector& inspector_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;  // Guards everything below.
  bool stopped_ = false;
  struct Watched {
    std::uint64_t number = 0;  // The job may be watched again while this watch completes.
    GiveUp give_up;            // Empty while it is being made.
    std::list<std::shared_ptr<Waiter>> waiters;  // Never empty.
  };
  std::uint64_t last_watch_ = 0;
  platform::KeyedMap<JobId, Watched> watched_;
  std::multimap<Moment, std::shared_ptr<Waiter>> deadlines_;
  Moment armed_ = Moment::max();
};

}  // namespace bide::server
