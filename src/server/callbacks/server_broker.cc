#include "server/callbacks/server_broker.h"

#include <string>
#include <utility>

#include "core/broker_answers.h"
#include "core/completion.h"

namespace bide::server {

namespace {

constexpr std::uint64_t kClosedBit = std::uint64_t{1} << 63;
constexpr const char* kClosedText = "the server has stopped";

Error closed() { return Error{ErrorCode::kUnavailable, kClosedText}; }

// Reports the results of the settlements in `sent`, which are in the order of `all`.
void report(const SentLeases& leases, const std::vector<LeaseRef>& sent, const std::vector<LeaseRef>& all,
            const Result<std::vector<Status>>& statuses) {
  std::size_t at = 0;
  for (const LeaseRef& lease : sent) {
    while (all[at].id != lease.id || all[at].token != lease.token) ++at;
    leases.settled(lease, core::status_at(statuses, at++));
  }
}

}  // namespace

class ServerBroker::Call {
 public:
  explicit Call(const ServerBroker& broker)
      : calls_(broker.calls_), admitted_((calls_.fetch_add(1) & kClosedBit) == 0) {}
  ~Call() {
    if (calls_.fetch_sub(1) == kClosedBit + 1) calls_.notify_all();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  explicit operator bool() const { return admitted_; }

 private:
  std::atomic<std::uint64_t>& calls_;
  const bool admitted_;
};

ServerBroker::ServerBroker(std::shared_ptr<Broker> broker, std::shared_ptr<SentLeases> leases,
                           std::string callback_queue)
    : leases_(std::move(leases)),
      callback_queue_(std::move(callback_queue)),
      capabilities_(broker->capabilities()),
      broker_(std::move(broker)) {}

void ServerBroker::set_on_done_queue(std::vector<Job>& jobs) const {
  for (Job& job : jobs) {
    if (job.headers.empty() || core::header_of(job, core::kOnDoneHeader).empty()) continue;
    std::erase_if(job.headers, [](const auto& header) { return header.first == core::kOnDoneQueueHeader; });
    if (callback_queue_ != core::kUsualCallbackQueue) {
      job.headers.emplace_back(core::kOnDoneQueueHeader, callback_queue_);
    }
  }
}

void ServerBroker::close() {
  calls_.fetch_or(kClosedBit);
  for (std::uint64_t now = calls_; now != kClosedBit; now = calls_) calls_.wait(now);
  broker_.reset();
}

void ServerBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  const Call call(*this);
  if (!call) return done(closed());
  set_on_done_queue(jobs);
  broker_->enqueue(std::move(jobs), std::move(done));
}

void ServerBroker::publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) {
  const Call call(*this);
  if (!call) return done(closed());
  set_on_done_queue(events);
  broker_->publish(std::move(events), std::move(done));
}

Result<std::unique_ptr<Subscription>> ServerBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  const Call call(*this);
  if (!call) return closed();
  return broker_->subscribe(std::move(options), std::move(sink));
}

void ServerBroker::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  const Call call(*this);
  if (!call) return done(closed());
  broker_->extend(std::move(leases), std::move(done));
}

void ServerBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  const Call call(*this);
  if (!call) return done(closed());
  for (Settlement& settlement : settlements) set_on_done_queue(settlement.effects);
  std::vector<LeaseRef> sent = leases_->settling(settlements);
  if (sent.empty()) return broker_->settle(std::move(settlements), std::move(done));
  std::vector<LeaseRef> all;
  all.reserve(settlements.size());
  for (const Settlement& settlement : settlements) all.push_back(settlement.lease);
  broker_->settle(std::move(settlements), [leases = leases_, sent = std::move(sent), all = std::move(all),
                                           done = std::move(done)](Result<std::vector<Status>> statuses) {
    report(*leases, sent, all, statuses);
    done(std::move(statuses));
  });
}

void ServerBroker::mark_delivered(std::vector<LeaseRef> leases) {
  const Call call(*this);
  if (call) broker_->mark_delivered(std::move(leases));
}

void ServerBroker::save_body(LeaseRef lease, std::string body, Completion<void> done) {
  const Call call(*this);
  if (!call) return done(closed());
  broker_->save_body(lease, std::move(body), std::move(done));
}

void ServerBroker::save_step(LeaseRef lease, Step step, Completion<void> done) {
  const Call call(*this);
  if (!call) return done(closed());
  broker_->save_step(lease, std::move(step), std::move(done));
}

void ServerBroker::report_progress(LeaseRef lease, Progress progress) {
  const Call call(*this);
  if (call) broker_->report_progress(lease, std::move(progress));
}

Pressure ServerBroker::pressure() const {
  const Call call(*this);
  if (!call) return {Pressure::Level::kBlocked, kClosedText, Milliseconds(1000), Pressure::Cause::kUnreachable};
  return broker_->pressure();
}

}  // namespace bide::server
