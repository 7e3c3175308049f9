#include "bench/engine_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "bench/producers.h"
#include "bench/work_directory.h"
#include "engine/ledger.h"

namespace bide::bench {

namespace {

using engine::Ledger;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;

// The real one, moved on or set at will.
class MovedClock : public platform::Clock {
 public:
  platform::Instant now() const override {
    platform::Instant instant = platform::real_clock().now();
    instant.elapsed_us += passed_us_;
    instant.wall_us += passed_us_ + set_us_;
    return instant;
  }
  std::shared_ptr<void> watch(std::function<void()>) const override { return nullptr; }
  void pass(microseconds time) { passed_us_ += time.count(); }
  void set_wall(microseconds by) { set_us_ += by.count(); }

 private:
  std::int64_t passed_us_ = 0;
  std::int64_t set_us_ = 0;
};

double now_ms(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

class Stepper {
 public:
  explicit Stepper(Ledger& ledger) : ledger_(ledger) {}

  template <class Request>
  Status step(StepsFigure& figure, Request&& request) {
    const double wall = now_ms(CLOCK_MONOTONIC);
    const double cpu = now_ms(CLOCK_THREAD_CPUTIME_ID);
    if (Status begun = ledger_.begin(); !begun) return begun;
    request();
    if (Status expired = ledger_.expire_leases(); !expired) return expired;
    if (auto granted = ledger_.grant(); !granted) return granted.error();
    if (Status committed = ledger_.commit(); !committed) return committed;
    for (const auto& callback : ledger_.take_callbacks()) callback({});
    ledger_.take_garbage()();
    auto more = ledger_.tidy();
    if (!more) return more.error();
    ++figure.steps;
    figure.longest_ms = std::max(figure.longest_ms, now_ms(CLOCK_MONOTONIC) - wall);
    figure.longest_cpu_ms = std::max(figure.longest_cpu_ms, now_ms(CLOCK_THREAD_CPUTIME_ID) - cpu);
    return {};
  }
  // Steps until the condition holds.
  template <class Is>
  Status until(StepsFigure& figure, Is&& is) {
    do {
      if (Status stepped = step(figure, [] {}); !stepped) return stepped;
    } while (!is());
    return {};
  }

 private:
  Ledger& ledger_;
};

}  // namespace

Result<std::vector<StepsFigure>> bench_steps(const BenchOptions& options, std::uint64_t jobs_in_all) {
  constexpr int kParts = 7;
  auto work = WorkDirectory::create(options.directory);
  if (!work) return work.error();
  MovedClock clock;
  platform::SystemRandom random;
  engine::EngineOptions engine_options;
  engine_options.directory = work->fresh("steps");
  engine_options.disk = &platform::real_disk();
  engine_options.clock = &clock;
  engine_options.random = &random;
  auto opened = Ledger::open(std::move(engine_options));
  if (!opened) return opened.error();
  Ledger& ledger = **opened;
  Stepper stepper(ledger);

  std::vector<StepsFigure> figures;
  const auto measure = [&](std::string what, auto&& part) -> Status {
    if (options.progress) options.progress(what, static_cast<int>(figures.size()), kParts);
    figures.push_back({.what = std::move(what)});
    return part(figures.back());
  };
  const auto wall = [&] { return Time(Milliseconds(clock.now().wall_us / 1000)); };
  const Time due = wall() + hours(2);
  const auto is_there = [&] { return !ledger.is_behind(); };

  Status status = measure("enqueue, 4096 a step", [&](StepsFigure& figure) -> Status {
    for (std::uint64_t number = 0; number < jobs_in_all;) {
      std::vector<Job> jobs;
      for (; jobs.size() < 4096 && number < jobs_in_all; ++number) {
        jobs.push_back(make_bench_job(number, "later"));
        jobs.back().due = due;
        jobs.back().expires = due + hours(1);
      }
      auto batch = std::make_shared<engine::EnqueueBatch>(engine::EnqueueBatch::of(std::move(jobs), wall()));
      if (Status stepped = stepper.step(figure, [&] { (void)ledger.enqueue(std::move(*batch)); }); !stepped) return stepped;
    }
    return {};
  });
  if (!status) return status.error();

  status = measure("the wall clock is set back by an hour", [&](StepsFigure& figure) {
    clock.set_wall(-hours(1));
    return stepper.until(figure, is_there);
  });
  if (!status) return status.error();

  status = measure("and forward again", [&](StepsFigure& figure) {
    clock.set_wall(hours(1));
    return stepper.until(figure, is_there);
  });
  if (!status) return status.error();

  std::vector<std::string> problems;
  status = measure("audit", [&](StepsFigure& figure) {
    bool answered = false;
    ledger.audit([&](const Result<AuditReport>& report) {
      answered = true;
      if (report) problems = report->problems;
    });
    return stepper.until(figure, [&] { return answered; });
  });
  if (status && !problems.empty()) status = Error{ErrorCode::kDamaged, "the audit found: " + problems.front()};
  if (!status) return status.error();

  status = measure("a page of a list", [&](StepsFigure& figure) {
    bool answered = false;
    ledger.list({}, "", 100, [&](const Result<JobPage>&) { answered = true; });
    return stepper.until(figure, [&] { return answered; });
  });
  if (!status) return status.error();

  status = measure("all of them become due at the same millisecond", [&](StepsFigure& figure) {
    clock.pass(hours(2) + minutes(1));
    return stepper.until(figure, is_there);
  });
  if (!status) return status.error();

  status = measure("all of them have expired, and a worker joins", [&](StepsFigure& figure) -> Status {
    clock.pass(hours(2));
    // Each expired job is read, and its death written down: what the steps are like is seen after some of them.
    constexpr std::uint64_t kSteps = 300;
    const Status joined = stepper.step(figure, [&] {
      ledger.subscribe(1, {.queues = {{.name = "later"}}, .credit = 100}, [](const std::vector<Lease>&) {});
    });
    if (!joined) return joined;
    return stepper.until(figure, [&] {
      return figure.steps >= kSteps || !ledger.next_wake_us() || *ledger.next_wake_us() > clock.now().elapsed_us;
    });
  });
  if (!status) return status.error();
  return figures;
}

}  // namespace bide::bench
