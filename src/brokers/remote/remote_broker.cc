#include "brokers/remote/remote_broker.h"

#include <algorithm>
#include <future>
#include <utility>

#include "brokers/remote/ordered_enqueue.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/topics.h"
#include "wire/batch_json.h"
#include "wire/event_json.h"
#include "wire/info_json.h"
#include "wire/lease_json.h"
#include "wire/settle_json.h"

namespace bide::brokers::remote {

namespace {

constexpr Milliseconds kFarewell{5'000};  // For the answers to what was asked.
constexpr std::int64_t kPressureFreshMs = 1'000;
constexpr int kUnderWay = 4;       // Requests of one sort at a time, ...
constexpr int kFullUnderWay = 32;  // ... and when they are full.

Error overloaded() {
  return {ErrorCode::kOverloaded, "too many jobs wait to be sent to the server; try again when some are confirmed"};
}

// The lease has ended, whatever became of the settlement. A cancelled job is in the wrong state.
bool is_over(ErrorCode code) {
  return code == ErrorCode::kLeaseLost || code == ErrorCode::kNotFound || code == ErrorCode::kWrongState;
}

}  // namespace

class RemoteBroker::Handle : public Subscription {
 public:
  explicit Handle(std::shared_ptr<Poller> poller) : poller_(std::move(poller)) {}
  ~Handle() override { poller_->end(); }
  void set_credit(int credit) override { poller_->set_credit(credit); }
  void set_delivery_limit(std::uint64_t deliveries) override { poller_->set_delivery_limit(deliveries); }

 private:
  const std::shared_ptr<Poller> poller_;
};

Result<std::shared_ptr<RemoteBroker>> RemoteBroker::open(RemoteSettings settings, const platform::Clock& clock) {
  auto caller = std::make_shared<ApiCaller>(std::move(settings));
  std::promise<Result<std::string>> answered;
  caller->call({.path = "/v1/capabilities"},
               [&](Result<std::string> answer) { answered.set_value(std::move(answer)); });
  const Result<std::string> answer = answered.get_future().get();
  if (!answer) {
    if (answer.error().code != ErrorCode::kNotFound) return answer.error();
    return Error{ErrorCode::kUnavailable, caller->settings().place() + " is no bide server: " + answer.error().message};
  }
  Result<Capabilities> capabilities = wire::read_capabilities(*answer);
  if (!capabilities) {
    return Error{ErrorCode::kUnavailable,
                 caller->settings().place() + " is no bide server: " + capabilities.error().message};
  }
  capabilities->virtual_time = false;
  return std::shared_ptr<RemoteBroker>(new RemoteBroker(std::move(caller), std::move(*capabilities), clock));
}

RemoteBroker::RemoteBroker(std::shared_ptr<ApiCaller> caller, Capabilities capabilities, const platform::Clock& clock)
    : caller_(std::move(caller)),
      capabilities_(std::move(capabilities)),
      clock_(clock),
      enqueues_(
          *caller_,
          {.path = "/v1/jobs",
           .list = "jobs",
           .repeatable = capabilities_.idempotent_ids,
           .under_way = kUnderWay,
           .most_under_way = kFullUnderWay,
           .items = caller_->settings().batch},
          [](std::string_view body) { return wire::read_batch_results(body); },
          [](const Error& error) { return Result<Enqueued>(error); }),
      settlements_(
          *caller_,
          {.path = "/v1/leases/settle",
           .list = "settlements",
           .under_way = kUnderWay,
           .most_under_way = kFullUnderWay,
           .items = caller_->settings().batch},
          [](std::string_view body) { return wire::read_settled(body); },
          [](const Error& error) { return Status(error); }),
      extensions_(
          *caller_, {.path = "/v1/leases/extend", .list = "leases", .under_way = 1},
          [](std::string_view body) -> Result<std::vector<Result<Extended>>> {
            Result<std::vector<Extended>> answers = wire::read_extended(body);
            if (!answers) return answers.error();
            return std::vector<Result<Extended>>(answers->begin(), answers->end());
          },
          [](const Error& error) { return Result<Extended>(error); }) {
  clock_watch_ = clock_.watch([this] { look_again(); });
}

RemoteBroker::~RemoteBroker() {
  clock_watch_.reset();
  bool silent = false;
  {
    const std::lock_guard lock(mutex_);
    silent = vanished_;
  }
  for (const auto& poller : pollers()) poller->end();
  if (!silent) {
    enqueues_.wait_until_idle(kFarewell);
    settlements_.wait_until_idle(kFarewell);
    return_held_leases();
  }
  caller_->close();
}

void RemoteBroker::vanish() {
  {
    const std::lock_guard lock(mutex_);
    vanished_ = true;
  }
  for (const auto& poller : pollers()) poller->abandon();
  caller_->close();
}

void RemoteBroker::look_again() {
  for (const auto& poller : pollers()) poller->look_again();
}

std::vector<std::shared_ptr<Poller>> RemoteBroker::pollers() const {
  const std::lock_guard lock(mutex_);
  return pollers_;
}

JobId RemoteBroker::next_id() {
  const std::int64_t wall_ms = clock_.now().wall_us / 1000;
  const std::lock_guard lock(mutex_);
  return ids_.next(wall_ms, random_.next());
}

void RemoteBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  const Time now = wall_now();
  const bool full = enqueues_.waiting_bytes() > kWaitingBytes;
  std::vector<std::string> items(jobs.size());
  std::vector<std::optional<Result<Enqueued>>> known(jobs.size());
  std::vector<JobId> named_here(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (Status valid = core::validate(jobs[i], now); !valid) {
      known[i] = valid.error();
      continue;
    }
    if (Status kept = core::check_kept(jobs[i], core::kept_by(capabilities_)); !kept) {
      known[i] = kept.error();
      continue;
    }
    if (full) {
      known[i] = overloaded();
      continue;
    }
    if (jobs[i].id.is_nil()) jobs[i].id = named_here[i] = next_id();
    wire::JsonWriter out(items[i]);
    wire::write(out, jobs[i]);
  }
  auto finish = [named_here = std::move(named_here), done = std::move(done)](std::vector<Result<Enqueued>> results) {
    // Of an id that was made here, "it exists" is an echo of a request whose answer was lost.
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] && results[i]->id == named_here[i]) results[i]->existed = false;
    }
    done(std::move(results));
  };
  const bool wait = std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return !job.after.empty(); });
  if (wait && jobs.size() > 1) {
    return std::make_shared<OrderedEnqueue>(*caller_, capabilities_.idempotent_ids, std::move(items), std::move(known),
                                            std::move(finish))
        ->send();
  }
  enqueues_.add(std::move(items), std::move(known), std::move(finish));
}

void RemoteBroker::publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) {
  if (!capabilities_.events) return done(Error{ErrorCode::kUnsupported, "the broker of this server has no events"});
  const Time now = wall_now();
  auto results = std::make_shared<std::vector<Result<Published>>>();
  auto sent = std::make_shared<std::vector<std::size_t>>();
  std::vector<Job> valid_events;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Status valid = core::validate_event(events[i], now);
    results->push_back(valid ? Result<Published>(Error{ErrorCode::kUnconfirmed, "the server did not answer for this event"})
                             : Result<Published>(valid.error()));
    if (!valid) continue;
    // With an id the request can be repeated when its answer is lost.
    if (events[i].id.is_nil()) events[i].id = next_id();
    sent->push_back(i);
    valid_events.push_back(std::move(events[i]));
  }
  if (valid_events.empty()) return done(std::move(*results));
  caller_->call({.method = "POST", .path = "/v1/publish", .body = wire::batch_json(valid_events),
                 .repeatable = capabilities_.idempotent_ids},
                [results, sent, done = std::move(done)](const Result<std::string>& answer) {
                  const auto read = answer ? wire::read_publish_results(*answer)
                                           : Result<std::vector<Result<Published>>>(answer.error());
                  for (std::size_t i = 0; i < sent->size(); ++i) {
                    if (!read) {
                      (*results)[(*sent)[i]] = read.error();
                    } else if (i < read->size()) {
                      (*results)[(*sent)[i]] = (*read)[i];
                    }
                  }
                  done(std::move(*results));
                });
}

Result<std::unique_ptr<Subscription>> RemoteBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  if (options.queues.empty()) return Error{ErrorCode::kInvalidArgument, "a subscription names at least one queue"};
  for (const QueueShare& share : options.queues) {
    if (!core::is_name(share.name)) {
      return Error{ErrorCode::kInvalidArgument, "invalid queue name " + core::quoted(share.name)};
    }
  }
  if (!capabilities_.kinds) options.kinds.clear();
  if (options.kinds.size() > wire::kMostKinds) {
    return Error{ErrorCode::kInvalidArgument, "a subscription names at most " + std::to_string(wire::kMostKinds) + " kinds"};
  }
  Poller::Owner owner;
  owner.caller = caller_;
  owner.clock = &clock_;
  owner.arrived = [this](const std::shared_ptr<Poller>& poller, const std::vector<Lease>& leases) {
    held_.add(poller, leases);
  };
  owner.expired = [this](const LeaseRef& lease) { held_.expired(lease); };
  owner.give_back = [this](std::vector<LeaseRef> leases, std::function<void()> given) {
    give_back(std::move(leases), std::move(given));
  };
  const auto poller =
      std::make_shared<Poller>(next_id().to_string(), std::move(options), std::move(sink), std::move(owner));
  {
    const std::lock_guard lock(mutex_);
    if (vanished_) return Error{ErrorCode::kUnavailable, "the broker is closed"};
    std::erase_if(pollers_, [](const auto& other) { return other->is_over(); });
    pollers_.push_back(poller);
  }
  poller->start();
  return std::unique_ptr<Subscription>(std::make_unique<Handle>(poller));
}

void RemoteBroker::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  std::vector<std::string> items;
  items.reserve(leases.size());
  for (const LeaseRef& lease : leases) {
    wire::JsonWriter out(items.emplace_back());
    wire::write_value(out, wire::Extension{lease, held_.take_progress(lease)});
  }
  extensions_.add(std::move(items), {},
                  [this, leases, sent_ms = now_ms(), done = std::move(done)](std::vector<Result<Extended>> answers) {
                    std::vector<Extended> extended;
                    extended.reserve(answers.size());
                    for (std::size_t i = 0; i < answers.size(); ++i) {
                      if (!answers[i]) return done(answers[i].error());
                      extended.push_back(*answers[i]);
                      if (answers[i]->lost) {
                        held_.released(leases[i]);
                      } else {
                        held_.extended(leases[i], sent_ms);
                      }
                    }
                    done(std::move(extended));
                  });
}

void RemoteBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  std::vector<std::string> items;
  std::vector<LeaseRef> leases;
  items.reserve(settlements.size());
  leases.reserve(settlements.size());
  for (Settlement& settlement : settlements) {
    for (Job& effect : settlement.effects) {
      if (effect.id.is_nil()) effect.id = next_id();
    }
    leases.push_back(settlement.lease);
    wire::JsonWriter out(items.emplace_back());
    wire::write(out, settlement);
  }
  settlements_.add(std::move(items), {},
                   [this, leases = std::move(leases), done = std::move(done)](std::vector<Status> statuses) {
                     for (std::size_t i = 0; i < statuses.size(); ++i) {
                       if (statuses[i] || is_over(statuses[i].error().code)) held_.released(leases[i]);
                     }
                     done(std::move(statuses));
                   });
}

void RemoteBroker::save_body(LeaseRef lease, std::string body, Completion<void> done) {
  if (body.size() > Limits::kBodyBytes) {
    return done(Error{ErrorCode::kInvalidArgument, "the body is longer than " + std::to_string(Limits::kBodyBytes) + " bytes"});
  }
  // Not repeatable: a first try that was held up on its way could replace what was saved after the second.
  caller_->call({.method = "POST",
                 .path = "/v1/leases/save",
                 .body = wire::save_request_json({lease, std::move(body)}),
                 .repeatable = false},
                [done = std::move(done)](const Result<std::string>& answer) {
                  done(answer ? Status() : Status(answer.error()));
                });
}

void RemoteBroker::save_step(LeaseRef lease, Step step, Completion<void> done) {
  caller_->call({.method = "POST", .path = "/v1/leases/steps", .body = wire::step_request_json({lease, std::move(step)})},
                [done = std::move(done)](const Result<std::string>& answer) {
                  done(answer ? Status() : Status(answer.error()));
                });
}

void RemoteBroker::report_progress(LeaseRef lease, Progress progress) { held_.report(lease, std::move(progress)); }

void RemoteBroker::give_back(std::vector<LeaseRef> leases, std::function<void()> done) {
  std::vector<Settlement> settlements;
  settlements.reserve(leases.size());
  for (const LeaseRef& lease : leases) settlements.push_back({lease, Returned{}, {}});
  settle(std::move(settlements), [done = std::move(done)](const Result<std::vector<Status>>&) { done(); });
}

void RemoteBroker::return_held_leases() {
  std::vector<LeaseRef> leases;
  for (const auto& poller : pollers()) {
    if (poller->outlives_process()) continue;
    for (const LeaseRef& lease : poller->held()) leases.push_back(lease);
  }
  if (leases.empty()) return;
  const auto given = std::make_shared<std::promise<void>>();
  std::future<void> all = given->get_future();
  give_back(std::move(leases), [given] { given->set_value(); });
  all.wait_for(kFarewell);
}

Pressure RemoteBroker::pressure() const {
  const std::int64_t now = now_ms();
  {
    const std::lock_guard lock(mutex_);
    if (pressure_asked_ms_ != 0 && now - pressure_asked_ms_ < kPressureFreshMs) return pressure_;
    pressure_asked_ms_ = now;
  }
  caller_->call({.path = "/v1/pressure", .patient = false}, [this](const Result<std::string>& answer) {
    if (!answer) return;
    if (Result<Pressure> pressure = wire::read_pressure(*answer)) {
      const std::lock_guard lock(mutex_);
      pressure_ = std::move(*pressure);
    }
  });
  const std::lock_guard lock(mutex_);
  return pressure_;
}

}  // namespace bide::brokers::remote
