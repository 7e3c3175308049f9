// The processes that tests start and harm: they use a broker through the public library only, and write down what they
// saw (history.h).
//
//   crash_child URL HISTORIES NAME produce [JOBS_A_SECOND]
//   crash_child URL HISTORIES NAME work [KEY=VALUE...]
//
// Keys of work: concurrency, credit, lease_ms, grace_ms, abandoned. Its kinds are said in handlers below.

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "bide/bide.h"
#include "brokers/open_broker.h"
#include "core/job_ids.h"
#include "crash/history.h"
#include "crash/witness.h"
#include "platform/clock.h"
#include "platform/random.h"

namespace {

using namespace bide;
using namespace std::chrono_literals;
using crash::HistoryWriter;

platform::SystemRandom& random_source() {
  thread_local platform::SystemRandom random;
  return random;
}

std::uint64_t below(std::uint64_t bound) { return random_source().next() % bound; }

JobId new_id() {
  thread_local core::JobIdSource ids;
  return ids.next(platform::real_clock().now().wall_us / 1000, random_source().next());
}

// Most are short and some are not; each waits a little if it must.
Job make_work() {
  Job job;
  job.id = new_id();
  job.kind = "work";
  job.body = std::to_string(below(20) == 0 ? below(300) : below(12));
  job.retry = RetryPolicy::fixed(5ms, 1000);
  if (below(4) == 0) job.delay = Milliseconds(below(300));
  return job;
}

int produce(Client& client, const std::string& rate) {
  const int wanted = rate.empty() ? 400 : std::atoi(rate.c_str());
  constexpr int kBatches = 20;  // A second.
  std::vector<Job> unconfirmed;
  for (auto next = std::chrono::steady_clock::now();; next += 1000ms / kBatches) {
    std::this_thread::sleep_until(next);
    std::vector<Job> jobs = std::move(unconfirmed);
    unconfirmed.clear();
    for (int i = 0; i < wanted / kBatches; ++i) jobs.push_back(make_work());
    const auto answers = client.enqueue(jobs);
    const bool may_repeat = client.broker().capabilities().idempotent_ids;
    for (std::size_t i = 0; i < answers.size() && may_repeat; ++i) {
      const bool again = !answers[i] && (answers[i].error().code == ErrorCode::kUnavailable ||
                                         answers[i].error().code == ErrorCode::kUnconfirmed);
      if (again) unconfirmed.push_back(std::move(jobs[i]));
    }
  }
}

// The work of the kill loop: some of it fails the first time, some of it has an effect.
Outcome do_work(const Job& job, Context& context) {
  std::this_thread::sleep_for(Milliseconds(std::atoi(job.body.c_str())));
  if (below(8) == 0) {
    Job effect = make_work();
    effect.kind = "effect";
    if (!context.enqueue(std::move(effect))) std::abort();
  }
  if (context.attempt() == 1 && below(8) == 0) return retry_after(Milliseconds(below(50)), "the first time");
  return Done{};
}

void add_handlers(Worker& worker) {
  worker.handle("work", do_work);
  worker.handle("effect", [](const std::string& body) {
    std::this_thread::sleep_for(Milliseconds(std::atoi(body.c_str()) / 4));
  });
  worker.handle("sleep",
                [](const std::string& body) { std::this_thread::sleep_for(Milliseconds(std::atoi(body.c_str()))); });
  // Ends when it is asked to, and says so by an exception.
  worker.handle("patient", [](Context& context) {
    while (!context.stop_token().stop_requested()) std::this_thread::sleep_for(5ms);
    throw std::runtime_error("asked to stop");
  });
  worker.handle("abort", [](const std::string& body) {
    std::this_thread::sleep_for(Milliseconds(std::atoi(body.c_str())));
    std::abort();
  });
  worker.handle("hang", [] { std::this_thread::sleep_for(24h); });
  worker.handle("throw_int", [] { throw 7; });
  worker.handle("result", [](const std::string& body, Context& context) {
    context.set_result(std::string(static_cast<std::size_t>(std::atoll(body.c_str())), 'r'));
  });
}

int work(Client& client, const std::string& name, const std::shared_ptr<HistoryWriter>& history,
         std::map<std::string, int> numbers) {
  WorkerOptions options{.concurrency = 8, .lease = 3000ms, .grace = 10s, .name = name};
  if (numbers.contains("concurrency")) options.concurrency = numbers["concurrency"];
  if (numbers.contains("credit")) options.credit = numbers["credit"];
  if (numbers.contains("lease_ms")) options.lease = Milliseconds(numbers["lease_ms"]);
  if (numbers.contains("grace_ms")) options.grace = Milliseconds(numbers["grace_ms"]);
  if (numbers.contains("abandoned")) options.abandoned_threads = numbers["abandoned"];
  Worker worker(client, options);
  worker.use([history](Context& context, const Next& next) {
    const std::string lease = context.job().id.to_string() + " " + context.job().headers.back().second;
    history->say("start " + lease + " " + std::to_string(context.attempt()));
    struct End {
      HistoryWriter& history;
      const std::string& lease;
      ~End() { history.say("finish " + lease); }
    } end{*history, lease};
    return next();
  });
  worker.on_problem([history](std::string_view line) { history->say("problem " + std::string(line)); });
  add_handlers(worker);
  history->say("working " + name);
  const int code = worker.run();
  const WorkerStats stats = worker.stats();
  history->say("stats " + name + " done=" + std::to_string(stats.done) + " returned=" + std::to_string(stats.returned) +
               " lease_lost=" + std::to_string(stats.lease_lost) + " timed_out=" + std::to_string(stats.timed_out));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string url = argv[1];
  const std::string name = argv[3];
  const std::string role = argv[4];
  const auto history = std::make_shared<HistoryWriter>(argv[2], name);
  auto opened = brokers::open_broker(url);
  for (int left = 60; !opened && left > 0; --left) {
    std::this_thread::sleep_for(500ms);
    opened = brokers::open_broker(url);
  }
  if (!opened) {
    std::fprintf(stderr, "crash_child %s: %s\n", name.c_str(), opened.error().message.c_str());
    return 1;
  }
  Client client(std::make_shared<crash::WitnessBroker>(opened->broker, history), opened->inspector);
  opened->broker.reset();
  opened->inspector.reset();
  if (role == "produce") return produce(client, argc > 5 ? argv[5] : "");
  std::map<std::string, int> numbers;
  for (int i = 5; i < argc; ++i) {
    const std::string word = argv[i];
    numbers[word.substr(0, word.find('='))] = std::atoi(word.substr(word.find('=') + 1).c_str());
  }
  const int code = work(client, name, history, numbers);
  client.close();
  return code;
}
