// rabbitmq_cluster_run: producers and workers on a cluster of three nodes, one fault after another: a random node is
// killed, or the leader of the queue, or a node is paused. Then everything is healed and drained, and the histories are
// held against what is there.
//
//   rabbitmq_cluster_run [--faults N] [--minutes N] [--seed N]
//
// Ends after so many faults, or with the first one after so many minutes.
//
// Ends with 0 when nothing was lost, started early or ran after it was settled, 1 when something was, and 2 when it was
// no test: publishing did not go on, or too little was confirmed. Prints what ran twice, which a failover may cause.

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "rabbitmq/load.h"
#include "rabbitmq/verdict.h"
#include "support/rabbitmq_server.h"
#include "support/seeded_random.h"

namespace bide::rabbitmq_test {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kNodes = 3;
constexpr char kPrefix[] = "run";

struct Options {
  int faults = 9;
  std::chrono::minutes at_most{24 * 60};
  std::uint64_t seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
};

class Run {
 public:
  explicit Run(const Options& options) : options_(options), random_(options.seed), server_(kNodes), load_(load()) {}

  int run() {
    load_.start_producing();
    const auto end = steady_clock::now() + options_.at_most;
    int faults = 0;
    for (; faults < options_.faults && steady_clock::now() < end; ++faults) {
      const std::uint64_t before = load_.confirmed();
      const auto start = steady_clock::now();
      const std::string what = harm();
      if (!load_.await_confirmed(before + kMore)) return not_a_test(what + ": publishing does not go on");
      const auto pause = duration_cast<milliseconds>(steady_clock::now() - start);
      server_.start(victim_);
      std::printf("%d: %s, %llu more confirmed after %lld ms, %llu unfinished\n", faults + 1, what.c_str(),
                  static_cast<unsigned long long>(kMore), static_cast<long long>(pause.count()),
                  static_cast<unsigned long long>(load_.unfinished()));
      std::fflush(stdout);
    }
    load_.stop_producing();
    const bool drained = drain();
    if (!drained) std::printf("%llu confirmed jobs have not come to an end\n", static_cast<unsigned long long>(load_.unfinished()));
    const crash::Findings findings = load_.examine();
    std::printf("%d faults\n%s", faults, findings.report().c_str());
    bool good = drained;
    for (const auto& [violation, count] : findings.violations) good = good && (count == 0 || is_a_duplicate(violation));
    const auto again = static_cast<unsigned long long>(load_.forgotten());
    std::printf("run after they were settled by the same process: %llu; enqueues refused and sent again: %llu\n", again,
                static_cast<unsigned long long>(load_.refused()));
    if (findings.confirmed < static_cast<std::uint64_t>(faults) * kMore) return not_a_test("too little load");
    return good && again == 0 ? 0 : 1;
  }

 private:
  static constexpr std::uint64_t kMore = 60;  // Confirmed after a fault, before the next.

  LoadOptions load() const {
    std::string hosts;
    for (int node = 0; node < kNodes; ++node) {
      hosts += (node > 0 ? "," : "") + ("127.0.0.1:" + std::to_string(server_.port(node)));
    }
    const std::string url = "amqp://guest:guest@" + hosts + "?prefix=" + kPrefix;
    return {.producer_url = url, .worker_url = url, .pause = milliseconds(150), .seed = options_.seed};
  }

  std::string harm() {
    victim_ = static_cast<int>(random_.next_below(kNodes));
    const std::uint64_t kind = random_.next_below(3);
    if (kind == 1) {
      const int leader = server_.leader_of(std::string(kPrefix) + ".queue.default");
      if (leader >= 0) victim_ = leader;
    }
    const std::string name = "node" + std::to_string(victim_ + 1);
    load_.note_outage(name);
    if (kind == 2) {
      const milliseconds length(500 + static_cast<std::int64_t>(random_.next_below(11'500)));
      server_.pause(victim_);
      std::this_thread::sleep_for(length);
      server_.resume(victim_);
      return "pause of " + name + " for " + std::to_string(length.count()) + " ms";
    }
    server_.kill(victim_);
    return (kind == 1 ? "kill of the leader, " : "kill of ") + name;
  }

  // In two of four runs of an earlier state a few delayed jobs had not come five minutes after the last fault. The server
  // is suspected: what a delay queue sends to a queue between two leaders is not sent again when the answer is
  // "not_leader, undefined" (rabbit_fifo_client), until that queue has another leader. So what is stuck is printed, and
  // each node gives up what it leads. A job that comes then was late, not lost.
  bool drain() {
    if (load_.drain(std::chrono::minutes(2))) return true;
    std::printf("%llu confirmed jobs are stuck\n", static_cast<unsigned long long>(load_.unfinished()));
    print_stuck();
    for (int node = 0; node < kNodes; ++node) {
      server_.kill(node);
      server_.start(node);
    }
    return load_.drain(std::chrono::minutes(2));
  }

  // Messages that delay queues have sent on and that nobody has confirmed: to which queues, refused by which, how often.
  void print_stuck() {
    for (int node = 0; node < kNodes; ++node) {
      const std::string workers = server_.evaluate(
          "[case sys:get_state(P) of S when map_size(element(8, S)) > 0 -> io:format(\"  ~s: ~p~n\", [element(4, "
          "element(2, S)), [{[element(4, Q) || Q <- element(5, D)], element(6, D), element(8, D)} || D <- "
          "maps:values(element(8, S))]]); _ -> ok end || {_, P, _, _} <- supervisor:which_children(rabbit_fifo_dlx_sup), is_pid(P)], ok.",
          node);
      std::printf("node%d\n%s\n", node + 1, workers.c_str());
    }
  }

  static int not_a_test(const std::string& why) {
    std::printf("no test: %s\n", why.c_str());
    return 2;
  }

  const Options options_;
  support::SeededRandom random_;
  support::RabbitmqServer server_;
  Load load_;
  int victim_ = 0;
};

int main_program(int count, char** arguments) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    if (name == "--faults") options.faults = std::atoi(arguments[i + 1]);
    if (name == "--minutes") options.at_most = std::chrono::minutes(std::atoi(arguments[i + 1]));
    if (name == "--seed") options.seed = std::strtoull(arguments[i + 1], nullptr, 10);
  }
  if (!support::RabbitmqServer::is_installed()) {
    std::printf("rabbitmq-server is not installed\n");
    return 0;
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
  return Run(options).run();
}

}  // namespace
}  // namespace bide::rabbitmq_test

int main(int count, char** arguments) {
  try {
    return bide::rabbitmq_test::main_program(count, arguments);
  } catch (const std::exception& error) {
    std::printf("no test: %s\n", error.what());
    return 2;
  }
}
