#include "outbox/outbox_broker.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <system_error>
#include <utility>

#include "bide/wait.h"
#include "core/duration.h"
#include "core/quote.h"
#include "core/request_rules.h"
#include "outbox/envelope.h"

namespace bide::outbox {

namespace {

using brokers::shared::SharedStore;

// How long opening waits for the target to say that its settings are wrong.
constexpr std::chrono::milliseconds kFirstAnswer{500};

Time wall_clock() { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

bool is_configuration(const Error& error) {
  return error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kUnsupported;
}

// Files may go while it looks.
std::uint64_t bytes_in(const std::string& directory) {
  namespace fs = std::filesystem;
  std::uint64_t bytes = 0;
  std::error_code gone;
  for (fs::directory_iterator file(directory, gone), end; !gone && file != end; file.increment(gone)) {
    std::error_code unknown;
    const std::uintmax_t size = file->file_size(unknown);
    if (!unknown) bytes += size;
  }
  return bytes;
}

// One target for each outbox: whoever owns the directory forwards for all.
Status check_target(const OutboxOptions& options) {
  namespace fs = std::filesystem;
  const fs::path path = fs::path(options.directory) / "target";
  std::string known;
  if (std::ifstream file(path); file) {
    std::getline(file, known);
  }
  if (known == options.target) return {};
  if (!known.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the outbox " + core::quoted(options.directory) + " belongs to " + known +
                                                  ", not to " + options.target + "; use another directory"};
  }
  std::ofstream file(path);
  file << options.target << '\n';
  file.close();
  if (file) return {};
  return Error{ErrorCode::kIoError, "cannot write " + path.string()};
}

}  // namespace

Result<std::unique_ptr<OutboxBroker>> OutboxBroker::open(OutboxOptions options, OpenTarget open_target) {
  engine::EngineOptions store;
  store.directory = options.directory;
  store.max_jobs = options.max_jobs;
  // A process that dies while it hands jobs on is not their fault.
  store.max_crashes = std::numeric_limits<std::uint32_t>::max() / 2;
  store.done_limit = 0;  // They would count among the jobs that it holds; ids are remembered apart.
  auto opened = SharedStore::open(std::move(store));
  if (!opened) return Error{opened.error().code, "outbox: " + opened.error().message};
  if (Status checked = check_target(options); !checked) return checked.error();
  std::unique_ptr<OutboxBroker> broker(new OutboxBroker(options.directory, std::move(*opened), std::move(open_target)));
  const auto answer = broker->forwarder_->wait_for_first_answer(kFirstAnswer);
  if (answer && !*answer && is_configuration(answer->error())) return answer->error();
  return broker;
}

OutboxBroker::OutboxBroker(std::string directory, std::unique_ptr<SharedStore> store, OpenTarget open_target)
    : directory_(std::move(directory)),
      store_(std::move(store)),
      absent_([this] { return problem(); }),
      forwarder_(std::make_unique<Forwarder>(*store_, [this] { return store_->is_owner(); }, std::move(open_target))) {}

OutboxBroker::~OutboxBroker() {
  // What the store still has to answer may ask the target.
  forwarder_->stop();
  store_.reset();
}

std::string OutboxBroker::problem() const {
  const std::string why = forwarder_->stats().problem;
  return "the broker behind the outbox has not been reached so far" + (why.empty() ? "" : ": " + why);
}

Broker& OutboxBroker::next_broker() const {
  const auto target = forwarder_->target();
  return target != nullptr ? *target->broker : absent_;
}

Inspector& OutboxBroker::next_inspector() const {
  const auto target = forwarder_->target();
  return target != nullptr ? *target->inspector : absent_;
}

void OutboxBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  // Somebody waits for the reply: better told at once that the target is away.
  if (!jobs.empty() && std::all_of(jobs.begin(), jobs.end(), [](const Job& job) { return core::is_request(job); })) {
    return next_broker().enqueue(std::move(jobs), std::move(done));
  }
  const Time now = wall_clock();
  std::vector<Result<Enqueued>> results;
  results.reserve(jobs.size());
  std::vector<Job> enclosed;
  std::vector<std::size_t> places;
  for (Job& job : jobs) {
    auto one = enclose(std::move(job), now);
    if (one) {
      places.push_back(results.size());
      enclosed.push_back(std::move(*one));
    }
    results.push_back(one ? Result<Enqueued>(Enqueued{}) : Result<Enqueued>(one.error()));
  }
  store_->enqueue(std::move(enclosed), [results = std::move(results), places = std::move(places),
                                        done = std::move(done)](Result<std::vector<Result<Enqueued>>> answers) mutable {
    if (!answers) return done(answers.error());
    for (std::size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move((*answers)[i]);
    done(std::move(results));
  });
}

Pressure OutboxBroker::pressure() const {
  Pressure own = store_->pressure();
  if (own.level == Pressure::Level::kOk) return own;
  const Forwarder::Stats stats = forwarder_->stats();
  if (own.cause == Pressure::Cause::kQueueLength) own.cause = Pressure::Cause::kOutboxLength;
  own.reason = "the outbox: " + own.reason + (stats.problem.empty() ? "" : "; " + stats.problem);
  return own;
}

Pressure BesideOutbox::pressure() const {
  const auto target = outbox_->target();
  if (target != nullptr) return target->broker->pressure();
  return {Pressure::Level::kBlocked, outbox_->problem(), Milliseconds(1000), Pressure::Cause::kUnreachable};
}

Capabilities OutboxBroker::capabilities() const { return next_broker().capabilities(); }

std::optional<JobInfo> OutboxBroker::shown(Result<JobInfo> found) {
  if (!found || found->state == JobState::kDone || found->job.queue != kOutboxQueue) return std::nullopt;
  auto job = unclose(std::move(found->job), Milliseconds(0), wall_clock());
  if (!job) return std::nullopt;
  JobInfo info;
  info.due = job->due.value_or(found->due + job->delay);
  info.state = info.due > wall_clock() ? JobState::kScheduled : JobState::kReady;
  if (found->state == JobState::kDead) {
    info.state = JobState::kDead;
    info.dead_reason = found->dead_reason;
    info.finished = found->finished;
    info.history = found->history;
    info.note = "refused by the broker behind the outbox";
  } else {
    info.note = "in the outbox, not handed to the broker yet";
  }
  info.job = std::move(*job);
  return info;
}

void OutboxBroker::find(JobId id, Completion<JobInfo> done) {
  store_->find(id, [this, id, done = std::move(done)](Result<JobInfo> found) {
    if (auto info = shown(std::move(found))) return done(std::move(*info));
    next_inspector().find(id, done);
  });
}

void OutboxBroker::explain(JobId id, Completion<Explanation> done) {
  store_->find(id, [this, id, done = std::move(done)](Result<JobInfo> found) {
    const auto info = shown(std::move(found));
    if (!info) return next_inspector().explain(id, done);
    if (info->state == JobState::kDead) {
      const std::string why = info->history.empty() ? "" : ": " + info->history.back().text;
      return done(Explanation{"outbox_dead", "It is dead in the outbox: the broker refused it" + why});
    }
    const std::string problem = forwarder_->stats().problem;
    done(Explanation{"outbox", "It is in the outbox and has not been handed to the broker yet" +
                                   (problem.empty() ? std::string(".") : ": " + problem)});
  });
}

GiveUp OutboxBroker::watch(JobId id, Completion<JobInfo> done) {
  // First until it has left the outbox, then at the target.
  struct Watching {
    std::mutex mutex;
    bool over = false;
    GiveUp give_up;
  };
  const auto watching = std::make_shared<Watching>();
  const auto keep = [watching](GiveUp give_up) {
    std::unique_lock lock(watching->mutex);
    if (!watching->over) {
      watching->give_up = std::move(give_up);
      return;
    }
    lock.unlock();
    give_up();
  };
  GiveUp first = store_->watch(id, [this, id, keep, watching, done = std::move(done)](Result<JobInfo> info) {
    if (auto dead = shown(std::move(info)); dead && dead->state == JobState::kDead) return done(std::move(*dead));
    {
      const std::lock_guard lock(watching->mutex);
      if (watching->over) return;
    }
    keep(next_inspector().watch(id, done));
  });
  {
    const std::lock_guard lock(watching->mutex);
    // The job may have left already: then what there is to give up is at the target.
    if (!watching->give_up) watching->give_up = std::move(first);
  }
  return [watching] {
    GiveUp give_up;
    {
      const std::lock_guard lock(watching->mutex);
      watching->over = true;
      give_up = std::exchange(watching->give_up, nullptr);
    }
    if (give_up) give_up();
  };
}

void OutboxBroker::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  // A job that is being handed on is not in this state, and is cancelled at the target.
  const CancelOptions here{.state = options.state == JobState::kDead ? JobState::kDead : JobState::kReady};
  store_->cancel(ids, here, [this, ids, options, done = std::move(done)](Result<std::vector<Status>> local) {
    std::vector<JobId> others;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (local && (*local)[i]) continue;
      others.push_back(ids[i]);
      places.push_back(i);
    }
    if (others.empty()) return done(std::move(local));
    next_inspector().cancel(others, options, [count = ids.size(), places, done](Result<std::vector<Status>> answers) {
      if (!answers) return done(answers.error());
      std::vector<Status> all(count);
      for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = (*answers)[i];
      done(std::move(all));
    });
  });
}

void OutboxBroker::status(Completion<OutboxStatus> done) const {
  store_->queues([this, done = std::move(done)](Result<std::vector<QueueInfo>> queues) {
    if (!queues) return done(queues.error());
    OutboxStatus status;
    for (const QueueInfo& queue : *queues) {
      if (queue.name != kOutboxQueue) continue;
      status.waiting = queue.ready + queue.scheduled + queue.running;
      status.dead = queue.dead;
      status.oldest = queue.oldest_ready;
    }
    status.disk_bytes = bytes_in(directory_);
    status.forwards_here = store_->is_owner();
    status.forwarder = forwarder_->stats();
    done(std::move(status));
  });
}

Result<OutboxStatus> OutboxBroker::status() const {
  return wait<OutboxStatus>([&](auto done) { status(std::move(done)); });
}

OutboxBroker* outbox_of(Broker& broker) {
  if (auto* const in_front = dynamic_cast<OutboxBroker*>(&broker)) return in_front;
  auto* const beside = dynamic_cast<BesideOutbox*>(&broker);
  return beside != nullptr ? &beside->outbox() : nullptr;
}

}  // namespace bide::outbox
