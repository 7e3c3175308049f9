#include <algorithm>
#include <utility>
#include <vector>

#include "bench/child.h"
#include "bench/figures.h"
#include "bench/open_engine.h"
#include "bench/producers.h"
#include "bench/server_parts.h"
#include "bench/settlers.h"
#include "bench/stopwatch.h"
#include "bide/client.h"

namespace bide::bench {

namespace {

constexpr std::size_t kInOneCall = 100;
constexpr int kWindow = 32;  // Calls under way.
constexpr int kCredit = 3200;

Result<double> rate(Broker& broker, std::uint64_t jobs) {
  Settlers settlers(broker, "cycle", 1, kCredit, nullptr, kInOneCall);
  const Stopwatch watch;
  const Status produced = produce(broker, {.jobs = jobs, .threads = 1, .batch = kInOneCall, .window = kWindow},
                                  [](std::uint64_t number) { return make_bench_job(number, "cycle"); });
  if (!produced) return produced.error();
  if (Status settled = settlers.wait_for(jobs); !settled) return settled.error();
  return static_cast<double>(jobs) / watch.seconds();
}

Result<RemoteCyclePart> run(const std::string& url, const std::string& directory, std::uint64_t jobs, int rounds) {
  auto engine = open_engine(directory);
  if (!engine) return engine.error();
  auto client = Client::open(url + "?batch=" + std::to_string(kInOneCall));
  if (!client) return client.error();
  std::vector<double> local_rates, remote_rates, ratios;
  // The first round warms both up and does not count.
  for (int round = 0; round <= rounds; ++round) {
    const Result<double> local = rate(**engine, jobs);
    if (!local) return local.error();
    const Result<double> remote = rate(client->broker(), jobs);
    if (!remote) return remote.error();
    if (round == 0) continue;
    local_rates.push_back(*local);
    remote_rates.push_back(*remote);
    ratios.push_back(*remote / *local);
  }
  return RemoteCyclePart{median(local_rates), median(remote_rates), median(ratios)};
}

}  // namespace

Result<RemoteCyclePart> measure_remote_cycle(const ServerProcess& server, const std::string& directory,
                                             std::uint64_t jobs, int rounds) {
  return run_in_child<RemoteCyclePart>(Ending::kByItself,
                                       [&](auto report) { report(run(server.url(), directory, jobs, rounds)); });
}

}  // namespace bide::bench
