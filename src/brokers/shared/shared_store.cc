#include "brokers/shared/shared_store.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "platform/clock.h"

namespace bide::brokers::shared {

namespace {

constexpr Milliseconds kFirstWait{2};
constexpr Milliseconds kLongestWait{50};
constexpr Milliseconds kGreetingAtMost{1'000};

std::int64_t now_ms() { return platform::real_clock().now().elapsed_us / 1000; }

}  // namespace

Result<std::unique_ptr<SharedStore>> SharedStore::open(engine::EngineOptions options, Milliseconds patience) {
  std::unique_ptr<SharedStore> store(new SharedStore(std::move(options)));
  const std::int64_t deadline = now_ms() + patience.count();
  for (Milliseconds pause = kFirstWait;; pause = std::min(pause * 2, kLongestWait)) {
    const Status taken = store->take_over();
    if (taken) return store;
    if (taken.error().code != ErrorCode::kBusy) return taken.error();
    const Milliseconds left(deadline - now_ms());
    auto greeted = greet_owner(store->options_.directory, std::max(left, Milliseconds(1)));
    if (greeted) {
      // Taking over later must not depend on where the process has gone meanwhile.
      std::error_code ignored;
      const auto absolute = std::filesystem::absolute(store->options_.directory, ignored);
      if (!ignored) store->options_.directory = absolute.string();
      store->guest_ = Guest::start(
          std::move(*greeted), [raw = store.get()] { return raw->find_owner(); }, patience);
      return store;
    }
    if (greeted.error().code != ErrorCode::kUnavailable) return greeted.error();
    if (left.count() <= 0) return taken.error();
    // It is about to listen, or about to end.
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

SharedStore::~SharedStore() {
  if (guest_ != nullptr) guest_->close();
  host_.reset();
  engine_.reset();
}

Status SharedStore::take_over() {
  auto opened = engine::Engine::open(options_);
  if (!opened) return opened.error();
  engine_ = std::move(*opened);
  // Where there can be no socket, the store is there for this process alone.
  if (auto host = Host::open(options_.directory, *engine_)) host_ = std::move(*host);
  owned_.store(engine_.get(), std::memory_order_release);
  return {};
}

Result<std::variant<Greeted, Successor>> SharedStore::find_owner() {
  const Status taken = take_over();
  if (taken) return std::variant<Greeted, Successor>(Successor{engine_.get(), engine_.get()});
  if (taken.error().code != ErrorCode::kBusy) return taken.error();
  auto greeted = greet_owner(options_.directory, kGreetingAtMost);
  if (!greeted) return greeted.error();
  return std::variant<Greeted, Successor>(std::move(*greeted));
}

Broker& SharedStore::broker() const {
  if (engine::Engine* const engine = owned()) return *engine;
  return *guest_;
}

Inspector& SharedStore::inspector() const {
  if (engine::Engine* const engine = owned()) return *engine;
  return *guest_;
}

void SharedStore::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  broker().enqueue(std::move(jobs), std::move(done));
}

Result<std::unique_ptr<Subscription>> SharedStore::subscribe(SubscribeOptions options, LeaseSink sink) {
  return broker().subscribe(std::move(options), std::move(sink));
}

void SharedStore::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  engine::Engine* const engine = owned();
  if (engine == nullptr) return guest_->extend(std::move(leases), std::move(done));
  if (guest_ != nullptr) done = guest_->noting(leases, std::move(done));
  engine->extend(std::move(leases), std::move(done));
}

void SharedStore::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  engine::Engine* const engine = owned();
  if (engine == nullptr) return guest_->settle(std::move(settlements), std::move(done));
  if (guest_ != nullptr) done = guest_->noting(settlements, std::move(done));
  engine->settle(std::move(settlements), std::move(done));
}

void SharedStore::mark_delivered(std::vector<LeaseRef> leases) { broker().mark_delivered(std::move(leases)); }

void SharedStore::queues(Completion<std::vector<QueueInfo>> done) { inspector().queues(std::move(done)); }

void SharedStore::find(JobId id, Completion<JobInfo> done) { inspector().find(id, std::move(done)); }

void SharedStore::list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) {
  inspector().list(std::move(filter), std::move(cursor), limit, std::move(done));
}

void SharedStore::explain(JobId id, Completion<Explanation> done) { inspector().explain(id, std::move(done)); }

void SharedStore::audit(Completion<AuditReport> done) { inspector().audit(std::move(done)); }

GiveUp SharedStore::watch(JobId id, Completion<JobInfo> done) { return inspector().watch(id, std::move(done)); }

void SharedStore::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  inspector().cancel(std::move(ids), options, std::move(done));
}

void SharedStore::reschedule(JobId id, Time due, Completion<void> done) {
  inspector().reschedule(id, due, std::move(done));
}

void SharedStore::replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) {
  inspector().replay(std::move(ids), options, std::move(done));
}

void SharedStore::pause(std::string queue, bool paused, Completion<void> done) {
  inspector().pause(std::move(queue), paused, std::move(done));
}

void SharedStore::purge(std::string queue, Completion<std::uint64_t> done) {
  inspector().purge(std::move(queue), std::move(done));
}

}  // namespace bide::brokers::shared
