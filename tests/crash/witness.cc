#include "crash/witness.h"

#include <string>

namespace bide::crash {
namespace {

std::string words(const LeaseRef& lease) { return lease.id.to_string() + " " + std::to_string(lease.token); }

std::string words(const Outcome& outcome) {
  if (std::holds_alternative<Done>(outcome)) return std::string(kDone) + " 0";
  if (std::holds_alternative<Dead>(outcome)) return std::string(kDead) + " 0";
  if (const auto* again = std::get_if<RetryAt>(&outcome)) {
    return std::string(again->fault == Fault::kTimedOut ? kTimedOut : kRetry) + " " +
           std::to_string(again->after.count());
  }
  return std::string(kReturned) + " " + std::to_string(std::get<Returned>(outcome).after.count());
}

// Certainly nothing was written.
bool is_refusal(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kAlreadyExists || code == ErrorCode::kOverloaded ||
         code == ErrorCode::kDiskFull;
}

}  // namespace

void WitnessBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  std::vector<std::string> lines;
  std::vector<JobId> ids;
  for (const Job& job : jobs) {
    ids.push_back(job.id);
    lines.push_back("enqueue " + job.id.to_string() + " " + std::to_string(job.delay.count()));
  }
  history_->say_all(lines);
  inner_->enqueue(std::move(jobs), [history = history_, ids = std::move(ids),
                                    done = std::move(done)](Result<std::vector<Result<Enqueued>>> answer) {
    std::vector<std::string> heard;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Error* error = !answer ? &answer.error() : !(*answer)[i] ? &(*answer)[i].error() : nullptr;
      if (error == nullptr) {
        heard.push_back("enqueued " + ids[i].to_string() + ((*answer)[i]->existed ? " 0" : " 1"));
      } else if (is_refusal(error->code)) {
        heard.push_back("not_enqueued " + ids[i].to_string());
      }
    }
    history->say_all(heard);
    done(std::move(answer));
  });
}

Result<std::unique_ptr<Subscription>> WitnessBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  const std::string lease_ms = std::to_string(options.lease.count());
  return inner_->subscribe(std::move(options),
                           [history = history_, lease_ms, sink = std::move(sink)](std::vector<Lease> leases) {
                             const std::int64_t now = now_us();
                             std::vector<std::string> lines;
                             for (Lease& lease : leases) {
                               lines.push_back("leased " + words({lease.job.id, lease.token}) + " " +
                                               std::to_string(lease.attempt) + " " + lease_ms + " " +
                                               std::to_string(now - lease.age.count() * 1000));
                               lease.job.headers.emplace_back(kTokenHeader, std::to_string(lease.token));
                             }
                             history->say_all(lines);
                             sink(std::move(leases));
                           });
}

void WitnessBroker::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  const std::string asked = std::to_string(now_us());
  inner_->extend(leases,
                 [history = history_, leases, asked, done = std::move(done)](Result<std::vector<Extended>> answer) {
                   std::vector<std::string> lines;
                   for (std::size_t i = 0; answer && i < leases.size() && i < answer->size(); ++i) {
                     if (!(*answer)[i].lost) lines.push_back("extended " + words(leases[i]) + " " + asked);
                   }
                   history->say_all(lines);
                   done(std::move(answer));
                 });
}

void WitnessBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  std::vector<std::string> lines;
  std::vector<LeaseRef> leases;
  for (const Settlement& settlement : settlements) {
    leases.push_back(settlement.lease);
    lines.push_back("settle " + words(settlement.lease) + " " + words(settlement.outcome));
    for (const Job& effect : settlement.effects) {
      lines.push_back("effect " + effect.id.to_string() + " " + std::to_string(effect.delay.count()) + " " +
                      words(settlement.lease));
    }
  }
  history_->say_all(lines);
  inner_->settle(std::move(settlements), [history = history_, leases = std::move(leases),
                                          done = std::move(done)](Result<std::vector<Status>> answer) {
    std::vector<std::string> heard;
    for (std::size_t i = 0; answer && i < leases.size() && i < answer->size(); ++i) {
      const Status& status = (*answer)[i];
      if (status)
        heard.push_back("settled " + words(leases[i]));
      else if (status.error().code == ErrorCode::kLeaseLost)
        heard.push_back("not_settled " + words(leases[i]));
    }
    history->say_all(heard);
    done(std::move(answer));
  });
}

}  // namespace bide::crash
