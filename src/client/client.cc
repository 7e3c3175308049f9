#include "bide/client.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "client/metered_clients.h"
#include "client/pressure_gate.h"
#include "rpc/requester.h"

namespace bide {

namespace {

Error closed() { return {ErrorCode::kInvalidArgument, "the client is closed"}; }

// One result of a batch of one.
Result<JobId> only(Result<std::vector<Result<Enqueued>>> answer) {
  if (!answer) return answer.error();
  if (answer->size() != 1) return Error{ErrorCode::kUnconfirmed, "the broker answered too little"};
  if (!answer->front()) return answer->front().error();
  return answer->front()->id;
}

// The answers for the jobs that were let through, and between them the errors of the others.
template <class T>
Completion<std::vector<Result<T>>> with_refused(std::vector<std::optional<Error>> refused,
                                                Completion<std::vector<Result<T>>> done) {
  return [refused = std::move(refused), done = std::move(done)](Result<std::vector<Result<T>>> answer) {
    std::vector<Result<T>> all;
    std::size_t next = 0;
    for (const std::optional<Error>& why : refused) {
      if (why) {
        all.emplace_back(*why);
      } else if (!answer) {
        all.emplace_back(answer.error());
      } else if (next < answer->size()) {
        all.push_back(std::move((*answer)[next++]));
      } else {
        all.emplace_back(Error{ErrorCode::kUnconfirmed, "the broker answered too little"});
      }
    }
    done(std::move(all));
  };
}

}  // namespace

Job make_job(std::string_view kind, std::string body, const EnqueueOptions& options) {
  Job job;
  job.id = options.id;
  job.kind = kind;
  job.queue = options.queue;
  job.body = std::move(body);
  if (!options.content_type.empty()) job.content_type = options.content_type;
  job.headers = options.headers;
  job.delay = options.delay;
  job.due = options.due;
  job.expires = options.expires;
  job.time_limit = options.time_limit;
  job.priority = options.priority;
  job.retry = options.retry;
  job.unique_key = options.unique_key;
  job.unique_for = options.unique_for;
  job.on_conflict = options.on_conflict;
  job.group = options.group;
  job.after = options.after;
  job.after_death = options.after_death;
  job.flow = options.flow;
  return job;
}

struct Client::State {
  mutable std::mutex mutex;  // Guards everything below.
  std::shared_ptr<Broker> broker;
  std::shared_ptr<Inspector> inspector;
  std::shared_ptr<rpc::Requester> requester;  // From the first question for it on; likewise the gate.
  std::shared_ptr<client::PressureGate> gate;
  ClientOptions options;
  std::vector<Client::EnqueueHook> hooks;

  Result<std::shared_ptr<Inspector>> open_inspector() const {
    const std::lock_guard lock(mutex);
    if (!broker) return closed();
    if (!inspector) return Error{ErrorCode::kUnsupported, "this broker cannot be asked about jobs"};
    return inspector;
  }
};

Result<Client> Client::open(std::string_view url, ClientOptions options) {
  auto opened = options.metrics ? client::MeteredClients::instance().open(url) : brokers::open_broker(url);
  if (!opened) return opened.error();
  if (options.outbox == nullptr) options.outbox = std::move(opened->outbox);
  return Client(std::move(opened->broker), std::move(opened->inspector), std::move(options));
}

Client::Client(std::shared_ptr<Broker> broker, std::shared_ptr<Inspector> inspector, ClientOptions options)
    : state_(std::make_shared<State>()) {
  state_->broker = std::move(broker);
  state_->inspector = std::move(inspector);
  state_->options = std::move(options);
}

std::shared_ptr<Broker> Client::shared_broker() const {
  std::lock_guard lock(state_->mutex);
  return state_->broker;
}

std::shared_ptr<rpc::Requester> Client::requester() const {
  std::lock_guard lock(state_->mutex);
  if (state_->broker && !state_->requester) {
    state_->requester = std::make_shared<rpc::Requester>(state_->broker, state_->inspector);
  }
  return state_->requester;
}

std::shared_ptr<client::PressureGate> Client::gate() const {
  std::lock_guard lock(state_->mutex);
  if (state_->broker && !state_->gate) {
    state_->gate = std::make_shared<client::PressureGate>(state_->broker, state_->options.outbox);
  }
  return state_->gate;
}

Result<std::shared_ptr<Inspector>> Client::shared_inspector() const { return state_->open_inspector(); }

void Client::use(EnqueueHook hook) {
  std::lock_guard lock(state_->mutex);
  state_->hooks.push_back(std::move(hook));
}

std::vector<std::optional<Error>> Client::run_hooks(std::vector<Job>& jobs) const {
  std::vector<EnqueueHook> hooks;
  {
    std::lock_guard lock(state_->mutex);
    hooks = state_->hooks;
  }
  std::vector<std::optional<Error>> refused;
  if (hooks.empty()) return refused;
  std::vector<Job> kept;
  for (Job& job : jobs) {
    std::optional<Error> why;
    for (const EnqueueHook& hook : hooks) {
      const Status allowed = hook(job);
      if (allowed) continue;
      why = allowed.error();
      break;
    }
    if (!why) kept.push_back(std::move(job));
    refused.push_back(std::move(why));
  }
  jobs = std::move(kept);
  return refused;
}

Pressure Client::pressure() const {
  const std::shared_ptr<Broker> broker = shared_broker();
  if (broker) return broker->pressure();
  return {Pressure::Level::kBlocked, closed().message, Milliseconds(0), Pressure::Cause::kUnreachable};
}

PressureWatch Client::on_pressure(std::function<void(const Pressure&)> changed) {
  const std::shared_ptr<client::PressureGate> watched = gate();
  return watched ? watched->watch(std::move(changed)) : PressureWatch();
}

void Client::send_request(Job job, Milliseconds timeout, Completion<Reply> done) {
  const std::shared_ptr<rpc::Requester> requests = requester();
  if (!requests) return done(closed());
  requests->request(std::move(job), timeout, std::move(done));
}

RequestStats Client::request_stats() const {
  const std::shared_ptr<rpc::Requester> requests = requester();
  return requests ? requests->stats() : RequestStats{};
}

Result<JobId> Client::enqueue(std::string_view kind, std::string_view body, const EnqueueOptions& options) {
  return enqueue_job(make_job(kind, std::string(body), options), options.pressure);
}

Result<JobId> Client::enqueue_job(Job job, const Policy& pressure) {
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  return only(wait<std::vector<Result<Enqueued>>>(
      [&](auto done) { enqueue_under(pressure, std::move(jobs), std::move(done)); }));
}

std::vector<Result<JobId>> Client::enqueue(std::vector<Job> jobs) {
  const std::size_t count = jobs.size();
  auto answer = wait<std::vector<Result<Enqueued>>>(
      [&](auto done) { enqueue_under({}, std::move(jobs), std::move(done)); });
  if (!answer) return std::vector<Result<JobId>>(count, answer.error());
  std::vector<Result<JobId>> results;
  results.reserve(count);
  for (Result<Enqueued>& each : *answer) {
    if (each) {
      results.emplace_back(each->id);
    } else {
      results.emplace_back(each.error());
    }
  }
  return results;
}

void Client::enqueue_async(std::string_view kind, std::string_view body, const EnqueueOptions& options,
                           Completion<JobId> done) {
  std::vector<Job> jobs;
  jobs.push_back(make_job(kind, std::string(body), options));
  enqueue_under(options.pressure, std::move(jobs),
                [done = std::move(done)](Result<std::vector<Result<Enqueued>>> answer) { done(only(std::move(answer))); });
}

void Client::enqueue_async(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  enqueue_under({}, std::move(jobs), std::move(done));
}

void Client::enqueue_under(const Policy& pressure, std::vector<Job> jobs,
                           Completion<std::vector<Result<Enqueued>>> done) {
  const std::shared_ptr<Broker> broker = shared_broker();
  if (!broker) return done(closed());
  const auto refused = run_hooks(jobs);
  const bool any_refused = std::any_of(refused.begin(), refused.end(), [](const auto& why) { return why.has_value(); });
  if (any_refused) done = with_refused<Enqueued>(refused, std::move(done));
  if (any_refused && jobs.empty()) return done(std::vector<Result<Enqueued>>());
  const PressurePolicy policy = pressure.value_or(state_->options.pressure);
  if (policy.action == OnPressure::kIgnore) return broker->enqueue(std::move(jobs), std::move(done));
  const std::shared_ptr<client::PressureGate> passed = gate();
  if (!passed) return done(closed());
  passed->enqueue(std::move(jobs), policy, std::move(done));
}

Awaitable<JobId> Client::job_awaitable(Job job, const Policy& pressure) {
  return Awaitable<JobId>([client = *this, job = std::move(job), pressure](Completion<JobId> done) mutable {
    std::vector<Job> jobs;
    jobs.push_back(std::move(job));
    client.enqueue_under(pressure, std::move(jobs), [done = std::move(done)](Result<std::vector<Result<Enqueued>>> answer) {
      done(only(std::move(answer)));
    });
  });
}

Result<Published> Client::publish(std::string_view topic, std::string_view body, const EnqueueOptions& options) {
  return publish_job(make_job(topic, std::string(body), options), options.pressure);
}

Result<Published> Client::publish_job(Job event, const Policy& pressure) {
  const std::shared_ptr<client::PressureGate> passed = gate();
  if (!passed) return closed();
  if (event.queue != EnqueueOptions().queue) {
    return Error{ErrorCode::kInvalidArgument, "queue: an event goes to the queues that are bound to its topic; leave it out"};
  }
  std::vector<Job> events;
  events.push_back(std::move(event));
  const auto refused = run_hooks(events);
  if (events.empty()) return *refused.front();
  // What is set for jobs says nothing of events.
  PressurePolicy policy = pressure.value_or(state_->options.pressure);
  if (!pressure && policy.action == OnPressure::kSpill) policy = PressurePolicy::ignore();
  auto answer = wait<std::vector<Result<Published>>>(
      [&](auto done) { passed->publish(std::move(events), policy, std::move(done)); });
  if (!answer) return answer.error();
  if (answer->size() != 1) return Error{ErrorCode::kUnconfirmed, "the broker answered too little"};
  return std::move(answer->front());
}

std::function<Result<JobInfo>(JobId)> Client::finder() const {
  return [weak = std::weak_ptr(state_)](JobId id) -> Result<JobInfo> {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return closed();
    const auto inspector = state->open_inspector();
    if (!inspector) return inspector.error();
    return wait<JobInfo>([&](auto done) { (*inspector)->find(id, std::move(done)); });
  };
}

Broker& Client::broker() const {
  std::lock_guard lock(state_->mutex);
  if (state_->broker) return *state_->broker;
  std::fprintf(stderr, "bide: broker() of a closed client\n");
  std::abort();
}

Inspector& Client::inspector() const {
  std::lock_guard lock(state_->mutex);
  if (state_->inspector) return *state_->inspector;
  std::fprintf(stderr, "bide: inspector() of a client that is closed, or has none\n");
  std::abort();
}

void Client::close() {
  std::shared_ptr<Broker> broker;
  std::shared_ptr<Inspector> inspector;
  std::shared_ptr<Broker> outbox;
  std::shared_ptr<rpc::Requester> requests;
  std::shared_ptr<client::PressureGate> passed;
  {
    std::lock_guard lock(state_->mutex);
    broker.swap(state_->broker);
    inspector.swap(state_->inspector);
    outbox.swap(state_->options.outbox);
    requests.swap(state_->requester);
    passed.swap(state_->gate);
  }
  // Who waits is told, whoever still holds these.
  if (passed) passed->close();
  if (requests) requests->close();
}

}  // namespace bide
