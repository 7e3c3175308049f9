#include "bide/worker.h"

#include <condition_variable>
#include <mutex>

#include "worker/crew.h"
#include "worker/setup.h"
#include "worker/signal_watch.h"
#include "worker/worker_state.h"

namespace bide {

namespace {

constexpr int kExitUnavailable = 69;
constexpr int kExitConfiguration = 78;

}  // namespace

Worker::Worker(Client client, WorkerOptions options)
    : state_(std::make_unique<worker::WorkerState>(std::move(client), worker::Setup{.options = std::move(options)})) {}

Worker::~Worker() { stop(); }

void Worker::add_handler(std::string kind, Handler handler) {
  state_->setup.handlers.emplace_back(std::move(kind), std::move(handler));
}

void Worker::use(Middleware middleware) { state_->setup.middleware.push_back(std::move(middleware)); }

void Worker::on_outcome(std::function<void(const Finished&)> hook) { state_->setup.on_outcome = std::move(hook); }

void Worker::on_dead(std::function<void(const Finished&)> hook) { state_->setup.on_dead = std::move(hook); }

void Worker::on_problem(std::function<void(std::string_view)> hook) { state_->setup.on_problem = std::move(hook); }

Status Worker::start() {
  if (Status valid = state_->setup.validate(); !valid) return valid;
  std::shared_ptr<Broker> broker = state_->client.shared_broker();
  if (!broker) return Error{ErrorCode::kInvalidArgument, "the client is closed"};
  std::lock_guard lock(state_->mutex);
  if (state_->crew) return Error{ErrorCode::kInvalidArgument, "the worker is running already"};
  auto crew = worker::Crew::start(state_->setup, std::move(broker));
  if (!crew) return crew.error();
  state_->crew = std::move(*crew);
  state_->changed.notify_all();
  return {};
}

void Worker::stop() {
  std::shared_ptr<worker::Crew> crew;
  {
    std::lock_guard lock(state_->mutex);
    state_->stop_requested = true;
    state_->changed.notify_all();
    crew = state_->crew;
  }
  if (!crew) return;
  crew->stop();
  std::lock_guard lock(state_->mutex);
  if (state_->crew != crew) return;
  state_->last_stats = crew->stats();
  state_->crew.reset();
  state_->stop_requested = false;
  state_->changed.notify_all();
}

void Worker::hurry() {
  std::lock_guard lock(state_->mutex);
  if (state_->crew) state_->crew->hurry();
}

int Worker::run() {
  // Watched from before the first job, so that no signal finds the process without it.
  worker::SignalWatch signals([this](int count) {
    if (count > 1) {
      hurry();
      return;
    }
    std::lock_guard lock(state_->mutex);
    state_->stop_requested = true;
    state_->changed.notify_all();
  });
  if (Status started = start(); !started) {
    worker::AttemptRunner(state_->setup).report(started.error().message);
    return started.error().code == ErrorCode::kInvalidArgument ? kExitConfiguration : kExitUnavailable;
  }
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->stop_requested || !state_->crew; });
  }
  stop();
  std::lock_guard lock(state_->mutex);
  state_->stop_requested = false;
  return 0;
}

WorkerStats Worker::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->crew ? state_->crew->stats() : state_->last_stats;
}

}  // namespace bide
