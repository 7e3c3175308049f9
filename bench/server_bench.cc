#include "bench/server_bench.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "bench/bare_log.h"
#include "bench/child.h"
#include "bench/http_connection.h"
#include "bench/producers.h"
#include "bench/resources.h"
#include "bench/server_process.h"
#include "bench/settlers.h"
#include "bench/work_directory.h"
#include "bide/client.h"

namespace bide::bench {

namespace {

struct Scale {
  std::uint64_t cycle_jobs;
  int cycle_rounds;
  int single_rounds;
  int idle_connections;
  int pollers;
  int woken_jobs;
  int rounds_of_all;
};

constexpr Scale kFull = {.cycle_jobs = 300'000,
                         .cycle_rounds = 5,
                         .single_rounds = 40,
                         .idle_connections = 5'000,
                         .pollers = 1'000,
                         .woken_jobs = 3'000,
                         .rounds_of_all = 10};
constexpr Scale kQuick = {.cycle_jobs = 50'000,
                          .cycle_rounds = 3,
                          .single_rounds = 10,
                          .idle_connections = 5'000,
                          .pollers = 1'000,
                          .woken_jobs = 1'000,
                          .rounds_of_all = 5};

constexpr int kParts = 4;
constexpr double kKiB = 1024;

constexpr std::size_t kInOneCall = 100;
constexpr CycleOptions kSmallBatches = {
    .threads = 1, .credit = 3200, .enqueue_batch = kInOneCall, .settle_batch = kInOneCall, .window = 32};

// Engine and server take turns, so that a noisy machine hits both. `directory` is for the engine in process.
Status measure_remote_cycle(ServerFigures& figures, const ServerProcess& server, const std::string& directory,
                            std::uint64_t jobs, int rounds) {
  auto engine = open_engine(directory);
  if (!engine) return engine.error();
  auto client = Client::open(server.url() + "?batch=" + std::to_string(kInOneCall));
  if (!client) return client.error();
  std::vector<double> local_rates, remote_rates, ratios;
  // The first round warms both up and does not count.
  for (int round = 0; round <= rounds; ++round) {
    const Result<double> local = cycle_rate(**engine, jobs, kSmallBatches);
    if (!local) return local.error();
    const Result<double> remote = cycle_rate(client->broker(), jobs, kSmallBatches);
    if (!remote) return remote.error();
    if (round == 0) continue;
    local_rates.push_back(*local);
    remote_rates.push_back(*remote);
    ratios.push_back(*remote / *local);
  }
  figures.local_jobs_per_s = median(local_rates);
  figures.remote_jobs_per_s = median(remote_rates);
  figures.remote_ratio = median(ratios);
  return {};
}

constexpr int kInARow = 25;  // Of each in turn: a noisy moment hits all.
constexpr int kRoundTrips = 100;

std::string envelope(std::uint64_t number) {
  return R"({"kind":"bench","queue":"alone","body_text":")" + make_bench_job(number, "alone").body + R"("})";
}

Status measure_remote_single(ServerFigures& figures, const ServerProcess& server, const std::string& directory, int rounds) {
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
      if (Status ok = bare->overwrite(); !ok) return ok;
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
      const Result<double> took = single_enqueue_us(client->broker(), number++);
      if (!took) return took.error();
      client_us.push_back(*took);
    }
  }
  figures.fdatasync_p50_us = median(bare_us);
  figures.round_trip_p50_us = median(trip_us);
  figures.enqueue_p50_us = median(http_us);
  figures.enqueue_ratio = figures.enqueue_p50_us / (figures.fdatasync_p50_us + figures.round_trip_p50_us);
  figures.client_enqueue_p50_us = median(client_us);
  return {};
}

Status allow_descriptors(int count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto wanted = static_cast<rlim_t>(count) + 100;
  if (limit.rlim_cur >= wanted) return {};
  limit.rlim_cur = wanted;
  if (limit.rlim_max < wanted || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{ErrorCode::kIoError, "this process may not open " + std::to_string(count) + " connections"};
  }
  return {};
}

Status ask_once(HttpConnection& connection) {
  const auto reply = connection.ask("GET", "/healthz", "");
  if (!reply) return reply.error();
  if (reply->status != 200) return Error{ErrorCode::kIoError, "/healthz was answered " + std::to_string(reply->status)};
  return {};
}

// Each has had one request and its answer, and is kept.
Status measure_idle_connections(ServerFigures& figures, const ServerProcess& server, int count) {
  // What the server needs once, however many there are, is not theirs: the first ones do not count.
  const int first = count / 50;
  if (Status allowed = allow_descriptors(first + count); !allowed) return allowed;
  std::vector<HttpConnection> connections;
  const auto grow_to = [&](std::size_t size) -> Status {
    while (connections.size() < size) {
      auto connection = HttpConnection::open(server.port());
      if (!connection) return connection.error();
      if (Status asked = ask_once(*connection); !asked) return asked;
      connections.push_back(std::move(*connection));
    }
    return {};
  };
  if (Status grown = grow_to(static_cast<std::size_t>(first)); !grown) return grown;
  const std::uint64_t before = server.resident_bytes();
  if (Status grown = grow_to(static_cast<std::size_t>(first + count)); !grown) return grown;
  const std::uint64_t after = server.resident_bytes();
  // They are still there: the last and the first of them answer.
  if (Status asked = ask_once(connections.front()); !asked) return asked;
  if (Status asked = ask_once(connections.back()); !asked) return asked;
  const double bytes = after > before ? static_cast<double>(after - before) : 0;
  figures.idle_connections = static_cast<std::uint64_t>(count);
  figures.idle_bytes_per_connection = bytes / count;
  return {};
}

constexpr int kPaceMs = 2;  // Between two jobs that come alone.

// Workers that wait for a job with a long poll each, watched by one thread.
class Pollers {
 public:
  explicit Pollers(const ServerProcess& server) : server_(server), watched_(::epoll_create1(EPOLL_CLOEXEC)) {}
  ~Pollers() { ::close(watched_); }
  Pollers(const Pollers&) = delete;
  Pollers& operator=(const Pollers&) = delete;

  Status open(int count) {
    for (int i = 0; i < count; ++i) {
      auto connection = HttpConnection::open(server_.port());
      if (!connection) return connection.error();
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = static_cast<std::uint64_t>(i);
      if (::epoll_ctl(watched_, EPOLL_CTL_ADD, connection->descriptor(), &event) != 0) {
        return Error{ErrorCode::kIoError, "epoll"};
      }
      connections_.push_back(std::move(*connection));
      if (Status asked = poll(static_cast<std::size_t>(i)); !asked) return asked;
    }
    return {};
  }

  // Waits for so many of them to be woken; the milliseconds that each took since the watch was started. They wait
  // again when all have come, so that what they ask does not get in the way of what is measured.
  Status wait_for(int count, const Stopwatch& watch, std::vector<double>& took_ms) {
    std::vector<std::size_t> woken;
    std::vector<epoll_event> events(connections_.size());
    while (static_cast<int>(woken.size()) < count) {
      const int ready = ::epoll_wait(watched_, events.data(), static_cast<int>(events.size()), 10'000);
      if (ready <= 0) return Error{ErrorCode::kIoError, "jobs were enqueued and no worker was woken"};
      for (int i = 0; i < ready; ++i) {
        const auto which = static_cast<std::size_t>(events[static_cast<std::size_t>(i)].data.u64);
        auto reply = connections_[which].receive_some();
        if (!reply) return reply.error();
        if (!*reply) continue;
        if ((*reply)->body.find("\"token\"") == std::string::npos) {
          return Error{ErrorCode::kIoError, "a worker was woken without a job: " + (*reply)->body};
        }
        took_ms.push_back(watch.microseconds() / 1000);
        woken.push_back(which);
      }
    }
    for (const std::size_t which : woken) {
      if (Status asked = poll(which); !asked) return asked;
    }
    return {};
  }

 private:
  Status poll(std::size_t which) {
    return connections_[which].send("POST", "/v1/leases", R"({"queue":"woken","max":1,"wait":"120s","lease":"10m"})");
  }

  const ServerProcess& server_;
  int watched_;
  std::vector<HttpConnection> connections_;
};

std::string batch_of(int jobs) {
  std::string body = "[";
  for (int i = 0; i < jobs; ++i)
    body += std::string(i > 0 ? "," : "") + R"({"kind":"bench","queue":"woken","body":{}})";
  return body + "]";
}

Status accepted_by(HttpConnection& connection) {
  const auto reply = connection.receive();
  if (!reply) return reply.error();
  if (reply->status / 100 == 2) return {};
  return Error{ErrorCode::kIoError, "enqueue was answered " + std::to_string(reply->status) + " " + reply->body};
}

Status measure_woken(ServerFigures& figures, const ServerProcess& server, int count, int jobs, int rounds_of_all) {
  auto producer = HttpConnection::open(server.port());
  if (!producer) return producer.error();
  Pollers pollers(server);
  if (Status opened = pollers.open(count); !opened) return opened;
  std::vector<double> alone_ms, all_ms;
  std::vector<double> ignored;
  // Until every poll waits at the server; the first ones do not count.
  for (int i = 0; i < jobs / 10 + jobs; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kPaceMs));
    const Stopwatch watch;
    if (Status sent = producer->send("POST", "/v1/jobs", batch_of(1)); !sent) return sent;
    if (Status woken = pollers.wait_for(1, watch, i < jobs / 10 ? ignored : alone_ms); !woken) return woken;
    if (Status accepted = accepted_by(*producer); !accepted) return accepted;
  }
  const std::string everybody = batch_of(count);
  for (int round = 0; round < rounds_of_all; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const Stopwatch watch;
    if (Status sent = producer->send("POST", "/v1/jobs", everybody); !sent) return sent;
    if (Status woken = pollers.wait_for(count, watch, all_ms); !woken) return woken;
    if (Status accepted = accepted_by(*producer); !accepted) return accepted;
  }
  figures.pollers = static_cast<std::uint64_t>(count);
  figures.woken_p50_ms = quantile(alone_ms, 0.5);
  figures.woken_p99_ms = quantile(alone_ms, 0.99);
  figures.all_woken_p99_ms = quantile(all_ms, 0.99);
  return {};
}

std::string text(const char* format, double first, double second) {
  char buffer[96];
  std::snprintf(buffer, sizeof buffer, format, first, second);
  return buffer;
}

}  // namespace

Result<ServerFigures> bench_server(const BenchOptions& options, const std::string& program) {
  const Scale& scale = options.quick ? kQuick : kFull;
  auto work = WorkDirectory::create(options.directory);
  if (!work) return work.error();
  ServerFigures figures;
  figures.quick = options.quick;
  int part = 0;
  // Each part has a server of its own: what one leaves behind does not weigh on the next.
  const auto measure = [&](std::string_view what, const char* name, auto run) -> Status {
    if (options.progress) options.progress(what, part, kParts);
    ++part;
    const auto server = ServerProcess::start(program, work->fresh(name));
    if (!server) return server.error();
    return measure_in_child(figures, [&](ServerFigures& measured) { return run(measured, *server); });
  };
  Status status = measure("enqueue, lease, settle", "cycle", [&](ServerFigures& f, const ServerProcess& server) {
    return measure_remote_cycle(f, server, work->fresh("local"), scale.cycle_jobs, scale.cycle_rounds);
  });
  if (!status) return status.error();
  status = measure("one enqueue at a time", "single", [&](ServerFigures& f, const ServerProcess& server) {
    return measure_remote_single(f, server, work->fresh("bare"), scale.single_rounds);
  });
  if (!status) return status.error();
  status = measure("idle connections", "idle", [&](ServerFigures& f, const ServerProcess& server) {
    return measure_idle_connections(f, server, scale.idle_connections);
  });
  if (!status) return status.error();
  status = measure("workers that wait", "woken", [&](ServerFigures& f, const ServerProcess& server) {
    return measure_woken(f, server, scale.pollers, scale.woken_jobs, scale.rounds_of_all);
  });
  if (!status) return status.error();
  return figures;
}

std::vector<Goal> goals(const ServerFigures& f) {
  return {
      {"enqueue, lease, settle over HTTP in batches of 100: rate, or against in process", ">= 100 k/s or >= 0.3",
       text("%.0f k/s, %.2f", f.remote_jobs_per_s / 1e3, f.remote_ratio),
       f.remote_jobs_per_s >= 100e3 || f.remote_ratio >= 0.3},
      {"one durable enqueue over HTTP: p50 against fdatasync + a round trip", "<= 2",
       text("%.2f (%.0f us)", f.enqueue_ratio, f.enqueue_p50_us), f.enqueue_ratio <= 2},
      {"memory of an idle connection, of 5000", "<= 24 KiB", text("%.1f KiB", f.idle_bytes_per_connection / kKiB, 0),
       f.idle_bytes_per_connection <= 24 * kKiB},
      {"a job wakes one of 1000 polling workers: p99", "<= 5 ms",
       text("%.2f ms (p50 %.2f)", f.woken_p99_ms, f.woken_p50_ms), f.woken_p99_ms <= 5},
  };
}

}  // namespace bide::bench
