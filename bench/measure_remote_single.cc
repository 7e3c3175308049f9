#include <utility>
#include <vector>

#include "bench/bare_log.h"
#include "bench/child.h"
#include "bench/figures.h"
#include "bench/http_connection.h"
#include "bench/producers.h"
#include "bench/server_parts.h"
#include "bench/stopwatch.h"
#include "bide/client.h"
#include "bide/wait.h"

namespace bide::bench {

namespace {

constexpr int kInARow = 25;  // Of each in turn: a noisy moment hits all.
constexpr int kRoundTrips = 100;

std::string envelope(std::uint64_t number) {
  return R"({"kind":"bench","queue":"alone","body_text":")" + make_bench_job(number, "alone").body + R"("})";
}

Result<RemoteSinglePart> run(const ServerProcess& server, const std::string& directory, int rounds) {
  auto bare = BareOverwrite::create(directory + "/bare.overwrite");
  if (!bare) return bare.error();
  auto connection = HttpConnection::open(server.port());
  if (!connection) return connection.error();
  auto client = Client::open(server.url());
  if (!client) return client.error();
  std::vector<double> bare_us, trip_us, http_us, client_us;
  std::uint64_t number = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kInARow; ++i) {
      const Stopwatch watch;
      if (Status ok = bare->overwrite(); !ok) return ok.error();
      bare_us.push_back(watch.microseconds());
    }
    const Result<double> trip = loopback_round_trip_us(kRoundTrips);
    if (!trip) return trip.error();
    trip_us.push_back(*trip);
    for (int i = 0; i < kInARow; ++i) {
      const std::string body = envelope(number++);
      const Stopwatch watch;
      const auto reply = connection->ask("POST", "/v1/jobs", body);
      http_us.push_back(watch.microseconds());
      if (!reply) return reply.error();
      if (reply->status != 201) {
        return Error{ErrorCode::kIoError, "enqueue was answered " + std::to_string(reply->status) + " " + reply->body};
      }
    }
    for (int i = 0; i < kInARow; ++i) {
      std::vector<Job> jobs;
      jobs.push_back(make_bench_job(number++, "alone"));
      const Stopwatch watch;
      const auto answer = wait<std::vector<Result<Enqueued>>>(
          [&](auto done) { client->broker().enqueue(std::move(jobs), std::move(done)); });
      client_us.push_back(watch.microseconds());
      if (!answer) return answer.error();
      if (!answer->front()) return answer->front().error();
    }
  }
  RemoteSinglePart part{median(bare_us), median(trip_us), median(http_us), 0, median(client_us)};
  part.ratio = part.enqueue_p50_us / (part.fdatasync_p50_us + part.round_trip_p50_us);
  return part;
}

}  // namespace

Result<RemoteSinglePart> measure_remote_single(const ServerProcess& server, const std::string& directory, int rounds) {
  return run_in_child<RemoteSinglePart>(Ending::kByItself,
                                        [&](auto report) { report(run(server, directory, rounds)); });
}

}  // namespace bide::bench
