#include "server/callbacks/completing_broker.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "core/completion.h"
#include "server/callbacks/completion.h"

namespace bide::server {

// What the jobs of leases that are out ask for. A job may be leased again while its last lease is being settled, so each
// lease is known by its token.
class CompletingBroker::Wishes {
 public:
  void leased(const std::vector<Lease>& leases) {
    std::lock_guard lock(mutex_);
    for (const Lease& lease : leases) {
      if (!core::wants_completion(lease.job)) continue;
      if (known_.size() >= kMostKnown) known_.erase(known_.begin());
      Job job = lease.job;
      std::string().swap(job.body);
      known_.insert_or_assign({lease.job.id, lease.token}, Wish{std::move(job), lease.attempt});
    }
  }

  void add_to(std::vector<Settlement>& settlements) const {
    std::lock_guard lock(mutex_);
    if (known_.empty()) return;
    for (Settlement& settlement : settlements) {
      const auto found = known_.find({settlement.lease.id, settlement.lease.token});
      if (found == known_.end()) continue;
      settlement = with_completion(std::move(settlement), found->second.job, found->second.attempt);
    }
  }

  void settled(const std::vector<LeaseRef>& leases, const Result<std::vector<Status>>& statuses) {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; statuses && i < leases.size() && i < statuses->size(); ++i) {
      const Status& status = (*statuses)[i];
      const bool is_over =
          status || status.error().code == ErrorCode::kLeaseLost || status.error().code == ErrorCode::kNotFound;
      if (is_over) known_.erase({leases[i].id, leases[i].token});
    }
  }

 private:
  struct Wish {
    Job job;  // Without its body.
    std::uint32_t attempt = 0;
  };

  mutable std::mutex mutex_;  // Guards everything below.
  std::map<std::pair<JobId, std::uint64_t>, Wish> known_;
};

CompletingBroker::CompletingBroker(std::shared_ptr<Broker> broker)
    : broker_(std::move(broker)), wishes_(std::make_shared<Wishes>()) {}

void CompletingBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  broker_->enqueue(std::move(jobs), std::move(done));
}

Result<std::unique_ptr<Subscription>> CompletingBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  return broker_->subscribe(std::move(options), [wishes = wishes_, sink = std::move(sink)](std::vector<Lease> leases) {
    wishes->leased(leases);
    sink(std::move(leases));
  });
}

void CompletingBroker::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  broker_->extend(std::move(leases), std::move(done));
}

void CompletingBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  std::vector<LeaseRef> leases;
  leases.reserve(settlements.size());
  for (const Settlement& settlement : settlements) leases.push_back(settlement.lease);
  wishes_->add_to(settlements);
  broker_->settle(std::move(settlements), [wishes = wishes_, leases = std::move(leases),
                                           done = std::move(done)](Result<std::vector<Status>> statuses) {
    wishes->settled(leases, statuses);
    done(std::move(statuses));
  });
}

Pressure CompletingBroker::pressure() const { return broker_->pressure(); }
Capabilities CompletingBroker::capabilities() const { return broker_->capabilities(); }

}  // namespace bide::server
