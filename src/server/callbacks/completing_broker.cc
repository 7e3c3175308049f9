#include "server/callbacks/completing_broker.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "server/callbacks/completion.h"

namespace bide::server {

namespace {

using SharedWish = std::shared_ptr<const CompletionWish>;

bool is_end(const Outcome& outcome) {
  return std::holds_alternative<Done>(outcome) || std::holds_alternative<Dead>(outcome);
}

}  // namespace

// Which leases are out and what their jobs wish, and which jobs are watched.
class CompletingBroker::Ends : public std::enable_shared_from_this<Ends> {
 public:
  Ends(Broker& broker, Inspector* inspector, std::string queue, std::function<void(std::string_view)> on_problem)
      : broker_(broker), inspector_(inspector), queue_(std::move(queue)), on_problem_(std::move(on_problem)) {}

  // From now on nothing new is asked of the broker, which may be on its way out.
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    watched_.clear();
  }

  // The wishes of a batch, each with the place of its job.
  using Wishes = std::vector<std::pair<std::size_t, CompletionWish>>;

  void enqueued(Wishes wishes, const std::vector<Result<Enqueued>>& results) {
    for (auto& [i, wish] : wishes) {
      if (i >= results.size() || !results[i] || results[i]->existed) continue;
      wish.id = results[i]->id;
      watch(std::make_shared<const CompletionWish>(std::move(wish)));
    }
  }

  // Every lease is remembered, also one without a wish: what is not known here was given out before a restart, and its
  // job must be looked up.
  void leased(const std::vector<Lease>& leases) {
    std::vector<SharedWish> wishes;
    {
      std::lock_guard lock(mutex_);
      if (known_.size() > kMostKnown) known_.clear();
      for (const Lease& lease : leases) {
        CompletionWish wish = wish_of(lease.job, lease.attempt);
        SharedWish& shared = known_[lease.job.id];
        shared = wish.empty() ? nullptr : std::make_shared<const CompletionWish>(std::move(wish));
        if (shared) wishes.push_back(shared);
      }
    }
    for (const SharedWish& wish : wishes) watch(wish);
  }

  // Adds what is to be told, then hands the batch on.
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
    auto batch = std::make_shared<Batch>();
    batch->settlements = std::move(settlements);
    batch->done = std::move(done);
    std::vector<std::size_t> unknown;
    {
      std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < batch->settlements.size(); ++i) {
        Settlement& settlement = batch->settlements[i];
        const auto found = known_.find(settlement.lease.id);
        if (found == known_.end()) {
          if (is_end(settlement.outcome)) unknown.push_back(i);
        } else if (found->second && is_end(settlement.outcome)) {
          settlement = with_completion(std::move(settlement), *found->second, queue_);
        }
      }
    }
    if (unknown.empty() || !inspector_ || !broker_.capabilities().inspect) return hand_on(batch);
    batch->to_find = unknown.size();
    for (const std::size_t i : unknown) {
      inspector_->find(batch->settlements[i].lease.id, [self = shared_from_this(), batch, i](Result<JobInfo> info) {
        if (info) {
          const CompletionWish wish = wish_of(info->job, info->attempts);
          batch->settlements[i] = with_completion(std::move(batch->settlements[i]), wish, self->queue_);
        }
        if (batch->to_find.fetch_sub(1) == 1) self->hand_on(batch);
      });
    }
  }

 private:
  struct Batch {
    std::vector<Settlement> settlements;
    Completion<std::vector<Status>> done;
    std::atomic<std::size_t> to_find = 0;
  };
  struct Watched {
    SharedWish wish;
    int settling = 0;  // Settlements under way that would tell of the end.
    bool told = false;
    std::optional<JobInfo> ended = {};  // While a settlement is under way it decides who tells.
  };

  struct Sent {
    JobId id;
    bool watched = false;  // And an end: counted in `settling`.
  };

  void hand_on(const std::shared_ptr<Batch>& batch) {
    std::vector<Sent> sent;
    sent.reserve(batch->settlements.size());
    {
      std::lock_guard lock(mutex_);
      for (const Settlement& settlement : batch->settlements) {
        sent.push_back({settlement.lease.id});
        if (!is_end(settlement.outcome)) continue;
        const auto found = watched_.find(settlement.lease.id);
        if (found == watched_.end()) continue;
        ++found->second.settling;
        sent.back().watched = true;
      }
    }
    broker_.settle(std::move(batch->settlements),
                   [self = shared_from_this(), sent = std::move(sent),
                    done = std::move(batch->done)](Result<std::vector<Status>> statuses) {
                     self->settled(sent, statuses);
                     done(std::move(statuses));
                   });
  }

  void settled(const std::vector<Sent>& sent, const Result<std::vector<Status>>& statuses) {
    std::vector<std::pair<JobInfo, SharedWish>> untold;
    {
      std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < sent.size(); ++i) {
        const bool succeeded = statuses && i < statuses->size() && (*statuses)[i];
        if (succeeded) known_.erase(sent[i].id);
        if (!sent[i].watched) continue;
        const auto found = watched_.find(sent[i].id);
        if (found == watched_.end()) continue;
        Watched& watched = found->second;
        --watched.settling;
        watched.told = watched.told || succeeded;
        if (watched.settling > 0 || !watched.ended) continue;
        if (!watched.told) untold.emplace_back(std::move(*watched.ended), watched.wish);
        watched_.erase(found);
      }
    }
    for (const auto& [info, wish] : untold) tell(info, *wish);
  }

  void watch(const SharedWish& wish) {
    if (!inspector_ || !broker_.capabilities().inspect) return;
    const JobId id = wish->id;
    {
      std::lock_guard lock(mutex_);
      if (closed_ || watched_.size() >= kMostWatched || !watched_.emplace(id, Watched{.wish = wish}).second) return;
    }
    // Not held by the watch: it may wait in the broker for years.
    inspector_->watch(id, [weak = weak_from_this(), id](Result<JobInfo> info) {
      if (const auto self = weak.lock()) self->ended(id, std::move(info));
    });
  }

  void ended(const JobId& id, Result<JobInfo> info) {
    SharedWish wish;
    {
      std::lock_guard lock(mutex_);
      const auto found = watched_.find(id);
      if (found == watched_.end()) return;
      if (info && found->second.settling > 0) {
        found->second.ended = std::move(*info);
        return;
      }
      const bool told = found->second.told;
      wish = found->second.wish;
      watched_.erase(found);
      if (told || !info) return;
    }
    tell(*info, *wish);
  }

  // Somebody else ended the job, or nobody.
  void tell(const JobInfo& info, const CompletionWish& wish) {
    const std::string mark = "seen " + std::to_string(info.finished.value_or(Time()).time_since_epoch().count());
    std::vector<Job> jobs = completion_jobs(info, wish, queue_, mark);
    if (jobs.empty() || is_closed()) return;
    broker_.enqueue(std::move(jobs),
                     [self = shared_from_this(), id = info.job.id](Result<std::vector<Result<Enqueued>>> results) {
                       const Error* error = nullptr;
                       if (!results) error = &results.error();
                       for (std::size_t i = 0; results && i < results->size(); ++i) {
                         if (!(*results)[i]) error = &(*results)[i].error();
                       }
                       if (error != nullptr && self->on_problem_) {
                         self->on_problem_("nobody is told of the end of job " + id.to_string() + ": " +
                                           error->message);
                       }
                     });
  }

  bool is_closed() {
    std::lock_guard lock(mutex_);
    return closed_;
  }

  Broker& broker_;
  Inspector* const inspector_;
  const std::string queue_;
  const std::function<void(std::string_view)> on_problem_;

  std::mutex mutex_;  // Guards everything below.
  bool closed_ = false;
  std::unordered_map<JobId, SharedWish> known_;  // Null: without a wish.
  std::unordered_map<JobId, Watched> watched_;
};

CompletingBroker::CompletingBroker(std::shared_ptr<Broker> broker, std::shared_ptr<Inspector> inspector,
                                   std::string callback_queue, std::function<void(std::string_view)> on_problem)
    : broker_(std::move(broker)),
      inspector_(std::move(inspector)),
      ends_(std::make_shared<Ends>(*broker_, inspector_.get(), std::move(callback_queue), std::move(on_problem))) {}

CompletingBroker::~CompletingBroker() { ends_->close(); }

void CompletingBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  Ends::Wishes wishes;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CompletionWish wish = wish_of(jobs[i], 0);
    if (!wish.empty()) wishes.emplace_back(i, std::move(wish));
  }
  if (wishes.empty()) return broker_->enqueue(std::move(jobs), std::move(done));
  broker_->enqueue(std::move(jobs), [ends = ends_, wishes = std::move(wishes), done = std::move(done)](
                                        Result<std::vector<Result<Enqueued>>> results) {
    if (results) ends->enqueued(wishes, *results);
    done(std::move(results));
  });
}

Result<std::unique_ptr<Subscription>> CompletingBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  return broker_->subscribe(std::move(options), [ends = ends_, sink = std::move(sink)](std::vector<Lease> leases) {
    ends->leased(leases);
    sink(std::move(leases));
  });
}

void CompletingBroker::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  broker_->extend(std::move(leases), std::move(done));
}

void CompletingBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  ends_->settle(std::move(settlements), std::move(done));
}

Pressure CompletingBroker::pressure() const { return broker_->pressure(); }
Capabilities CompletingBroker::capabilities() const { return broker_->capabilities(); }

}  // namespace bide::server
