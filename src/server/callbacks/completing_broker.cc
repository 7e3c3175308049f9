#include "server/callbacks/completing_broker.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/broker_answers.h"
#include "core/completion.h"
#include "server/http/digest.h"

namespace bide::server {

namespace {

// Adds the completion jobs when the outcome is final. Their ids are derived from the lease: a settlement that is sent
// twice does not notify twice.
void add_completions(Settlement& settlement, const Job& job, std::uint32_t attempts) {
  for (Job& made : core::completion_jobs(job, attempts, settlement.outcome)) {
    made.id = id_from_hash("bide completion\n" + job.id.to_string() + "\n" + made.kind + "\n" +
                           std::to_string(settlement.lease.token));
    settlement.effects.push_back(std::move(made));
  }
}

}  // namespace

// Leases of jobs that want completions. Known by token: a job may be leased again while its last lease is being settled.
class CompletingBroker::Leases {
 public:
  void add(const std::vector<Lease>& leases) {
    std::lock_guard lock(mutex_);
    for (const Lease& lease : leases) {
      if (!core::wants_completion(lease.job)) continue;
      if (known_.size() >= kMostLeases) known_.erase(known_.begin());
      Job job = lease.job;
      std::string().swap(job.body);
      known_.insert_or_assign({lease.job.id, lease.token}, Known{std::move(job), lease.attempt});
    }
  }

  void complete(std::vector<Settlement>& settlements) const {
    std::lock_guard lock(mutex_);
    if (known_.empty()) return;
    for (Settlement& settlement : settlements) {
      const auto found = known_.find({settlement.lease.id, settlement.lease.token});
      if (found != known_.end()) add_completions(settlement, found->second.job, found->second.attempt);
    }
  }

  void settled(const std::vector<LeaseRef>& leases, const Result<std::vector<Status>>& statuses) {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; statuses && i < leases.size(); ++i) {
      if (core::ends_lease(core::status_at(statuses, i))) known_.erase({leases[i].id, leases[i].token});
    }
  }

 private:
  struct Known {
    Job job;  // Without its body.
    std::uint32_t attempt = 0;
  };

  mutable std::mutex mutex_;  // Guards everything below.
  std::map<std::pair<JobId, std::uint64_t>, Known> known_;
};

CompletingBroker::CompletingBroker(std::shared_ptr<Broker> broker)
    : broker_(std::move(broker)), leases_(std::make_shared<Leases>()) {}

Result<std::unique_ptr<Subscription>> CompletingBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  return broker_->subscribe(std::move(options), [known = leases_, sink = std::move(sink)](std::vector<Lease> leases) {
    known->add(leases);
    sink(std::move(leases));
  });
}

void CompletingBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  std::vector<LeaseRef> leases;
  leases.reserve(settlements.size());
  for (const Settlement& settlement : settlements) leases.push_back(settlement.lease);
  leases_->complete(settlements);
  broker_->settle(std::move(settlements), [known = leases_, leases = std::move(leases),
                                          done = std::move(done)](Result<std::vector<Status>> statuses) {
    known->settled(leases, statuses);
    done(std::move(statuses));
  });
}

}  // namespace bide::server
