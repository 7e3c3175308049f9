// bide bench: what this machine can do, and what bide makes of it.

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/broker_bench.h"
#include "bench/broker_setup.h"
#include "bench/engine_bench.h"
#include "bench/server_bench.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/open_client.h"
#include "cli/output.h"

namespace bide::cli {

namespace {

JsonArray goals_json(const std::vector<bench::Goal>& goals) {
  return JsonArray(goals, [](const bench::Goal& goal) {
    return JsonObject()
        .add("what", goal.what)
        .add("wanted", goal.wanted)
        .add("measured", goal.measured)
        .add("met", goal.met);
  });
}

JsonObject figures_json(const bench::EngineFigures& f) {
  JsonObject json;
  json.add("quick", f.quick);
  json.add("limit", JsonObject().add("log_jobs_per_s", f.log_jobs_per_s).add("fdatasync_p50_us", f.fdatasync_p50_us));
  json.add("cycle", JsonObject().add("jobs_per_s", f.cycle_jobs_per_s).add("ratio", f.cycle_ratio));
  json.add("enqueue", JsonObject().add("p50_us", f.enqueue_p50_us).add("ratio", f.enqueue_ratio));
  json.add("delayed", JsonObject()
                          .add("jobs", f.delayed_jobs)
                          .add("bytes_per_job", f.delayed_bytes_per_job)
                          .add("jobs_per_s", f.delayed_jobs_per_s)
                          .add("load_ratio", f.delayed_load_ratio));
  json.add("lateness", JsonObject()
                           .add("waiting_jobs", f.lateness_waiting)
                           .add("p50_ms", f.lateness_p50_ms)
                           .add("p99_ms", f.lateness_p99_ms)
                           .add("early", f.lateness_early));
  json.add("recovery", JsonObject().add("jobs", f.recovery_jobs).add("seconds", f.recovery_seconds));
  json.add("depth", JsonObject().add("ratio", f.depth_ratio));
  json.add("idle", JsonObject().add("cpu_ms_per_s", f.idle_cpu_ms_per_s));
  json.add("disk", JsonObject()
                       .add("bytes", f.disk_bytes)
                       .add("live_bytes", f.disk_live_bytes)
                       .add("amplification", f.disk_amplification));
  return json.add("goals", goals_json(bench::goals(f)));
}

JsonObject figures_json(const bench::WorkerFigures& f) {
  JsonObject json;
  json.add("quick", f.quick);
  json.add("limit", JsonObject().add("log_jobs_per_s", f.log_jobs_per_s));
  json.add("worker", JsonObject()
                         .add("jobs_per_s", f.jobs_per_s)
                         .add("ratio", f.ratio)
                         .add("effects_jobs_per_s", f.effects_jobs_per_s)
                         .add("effects_ratio", f.effects_ratio));
  return json.add("goals", goals_json(bench::goals(f)));
}

JsonObject figures_json(const bench::BrokerFigures& f) {
  JsonObject json;
  json.add("quick", f.quick);
  JsonObject ceiling;
  ceiling.add("enqueue_per_s", f.ceiling_enqueue_per_s);
  if (f.ceiling_enqueue_per_s && f.enqueue_ratio) {
    ceiling.add("single_p50_us", f.ceiling_single_p50_us)
        .add("single_p99_us", f.ceiling_single_p99_us)
        .add("rounds", JsonArray(f.ceiling_rounds));
  }
  json.add("ceiling", ceiling);
  json.add("enqueue", JsonObject()
                          .add("per_s", f.enqueue_per_s)
                          .add("ratio", f.enqueue_ratio)
                          .add("single_p50_us", f.single_p50_us)
                          .add("single_p99_us", f.single_p99_us)
                          .add("rounds", JsonArray(f.enqueue_rounds)));
  json.add("cycle", JsonObject().add("per_s", f.cycle_per_s).add("rounds", JsonArray(f.cycle_rounds)));
  json.add("lateness", JsonObject()
                           .add("jobs", f.lateness_jobs)
                           .add("p50_ms", f.lateness_p50_ms)
                           .add("p99_ms", f.lateness_p99_ms)
                           .add("max_ms", f.lateness_max_ms)
                           .add("early", f.lateness_early));
  return json.add("goals", goals_json(bench::goals(f)));
}

JsonObject figures_json(const bench::ServerFigures& f) {
  JsonObject json;
  json.add("quick", f.quick);
  json.add("limit", JsonObject()
                        .add("local_jobs_per_s", f.local_jobs_per_s)
                        .add("fdatasync_p50_us", f.fdatasync_p50_us)
                        .add("round_trip_p50_us", f.round_trip_p50_us));
  json.add("cycle", JsonObject().add("jobs_per_s", f.remote_jobs_per_s).add("ratio", f.remote_ratio));
  json.add("enqueue", JsonObject()
                          .add("p50_us", f.enqueue_p50_us)
                          .add("ratio", f.enqueue_ratio)
                          .add("client_p50_us", f.client_enqueue_p50_us));
  json.add("idle", JsonObject()
                       .add("connections", f.idle_connections)
                       .add("bytes_per_connection", f.idle_bytes_per_connection));
  json.add("woken", JsonObject()
                        .add("workers", f.pollers)
                        .add("p50_ms", f.woken_p50_ms)
                        .add("p99_ms", f.woken_p99_ms)
                        .add("all_p99_ms", f.all_woken_p99_ms));
  return json.add("goals", goals_json(bench::goals(f)));
}

std::string goals_text(const std::vector<bench::Goal>& goals) {
  Table table({"what", "goal", "measured", ""});
  for (const bench::Goal& goal : goals) {
    table.row({goal.what, goal.wanted, goal.measured, goal.met ? "met" : "NOT MET"});
  }
  return table.text();
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[400];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

auto progress_on(StatusLine& status) {
  return [&status](std::string_view what, int part, int parts) {
    status.show_progress(static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(parts), what);
  };
}

// With what every benchmark is told: where, how much, and where its progress goes.
bench::BenchOptions bench_options(const Invocation& call, StatusLine& status) {
  return {.directory = call.value_or("--dir", ""), .quick = call.has("--quick"), .progress = progress_on(status)};
}

int bench_engine(const Invocation& call) {
  StatusLine status;
  const auto delayed_jobs = static_cast<std::uint64_t>(call.number("--delayed", 0, 1, 1'000'000'000));
  const bench::EngineFigures figures = take(bench::bench_engine(bench_options(call, status), delayed_jobs));
  status.clear();
  print(call, figures_json(figures),
        formatted("limits of this machine: a bare log does %.0f k jobs/s; overwrite + fdatasync takes %.0f us (p50)\n\n",
                  figures.log_jobs_per_s / 1e3, figures.fdatasync_p50_us) +
            goals_text(bench::goals(figures)));
  return kOk;
}

int bench_worker(const Invocation& call) {
  StatusLine status;
  const bench::WorkerFigures figures = take(bench::bench_worker(bench_options(call, status)));
  status.clear();
  print(call, figures_json(figures),
        formatted("limit of this machine: a bare log does %.0f k jobs/s\n\n", figures.log_jobs_per_s / 1e3) +
            goals_text(bench::goals(figures)));
  return kOk;
}

int bench_broker(const Invocation& call) {
  const Result<bench::BrokerSetup> setup = bench::prepare_broker(url_of(call));
  if (!setup) fail_configured(setup.error());
  StatusLine status;
  bench::BrokerBenchOptions options;
  options.quick = call.has("--quick");
  options.bare_enqueue_rate = setup->bare_enqueue_rate;
  options.bare_single_us = setup->bare_single_us;
  options.progress = progress_on(status);
  Result<bench::BrokerFigures> figures = [&] {
    Client client = open_client(setup->url, Missing::kCreate);
    return bench::bench_broker(client.broker(), client.inspector(), options);
  }();
  status.clear();
  const Status cleaned = setup->clean_up(bench::broker_bench_queues());
  const bench::BrokerFigures measured = take(std::move(figures));
  take(cleaned);
  std::string text =
      formatted("on %d %s (hosts of the URL that answer)\n", setup->nodes, setup->nodes == 1 ? "node" : "nodes");
  if (measured.ceiling_enqueue_per_s) {
    text += formatted("limit of this server: %.1f k bare confirmed publishes/s, one at a time %.0f us (p50), %.0f us (p99)\n",
                      *measured.ceiling_enqueue_per_s / 1e3, measured.ceiling_single_p50_us.value_or(0),
                      measured.ceiling_single_p99_us.value_or(0));
  }
  text += formatted(
      "enqueue %.1f k/s, one at a time %.0f us (p50), %.0f us (p99); enqueue, lease, settle %.1f k/s; lateness p50 %.1f ms\n\n",
      measured.enqueue_per_s / 1e3, measured.single_p50_us, measured.single_p99_us, measured.cycle_per_s / 1e3,
      measured.lateness_p50_ms);
  print(call, figures_json(measured).add("nodes", setup->nodes), text + goals_text(bench::goals(measured)));
  return kOk;
}

int bench_server(const Invocation& call) {
  StatusLine status;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const bench::ServerFigures figures = take(bench::bench_server(bench_options(call, status), program));
  status.clear();
  print(call, figures_json(figures),
        formatted("limits of this machine: the engine in process does %.0f k jobs/s in such batches; overwrite + "
                  "fdatasync\ntakes %.0f us, a loopback round trip %.0f us (p50)\n"
                  "one enqueue through bide's client takes %.0f us (p50); %llu workers woken at once: p99 %.1f ms\n\n",
                  figures.local_jobs_per_s / 1e3, figures.fdatasync_p50_us, figures.round_trip_p50_us,
                  figures.client_enqueue_p50_us, static_cast<unsigned long long>(figures.pollers),
                  figures.all_woken_p99_ms) +
            goals_text(bench::goals(figures)));
  return kOk;
}

int bench_steps(const Invocation& call) {
  StatusLine status;
  const std::uint64_t jobs = call.has("--quick") ? 1'000'000 : 10'000'000;
  const std::vector<bench::StepsFigure> figures = take(bench::bench_steps(bench_options(call, status), jobs));
  status.clear();
  JsonArray json;
  Table table({"what", "steps", "longest, ms", "of it CPU, ms"});
  for (const bench::StepsFigure& figure : figures) {
    json.add(JsonObject()
                 .add("what", figure.what)
                 .add("steps", figure.steps)
                 .add("longest_ms", figure.longest_ms)
                 .add("longest_cpu_ms", figure.longest_cpu_ms));
    table.row({figure.what, std::to_string(figure.steps), formatted("%.1f", figure.longest_ms),
               formatted("%.1f", figure.longest_cpu_ms)});
  }
  print(call, JsonObject().add("jobs", jobs).add("steps", json),
        std::to_string(jobs) + " jobs\n\n" + table.text());
  return kOk;
}

int bench_coroutines(const Invocation& call) {
  StatusLine status;
  const auto handlers = static_cast<std::uint64_t>(call.number("--handlers", 10'000, 1, 1'000'000));
  const bench::CoroutineFigures figures = take(bench::bench_coroutines(bench_options(call, status), handlers));
  status.clear();
  print(call,
        JsonObject()
            .add("handlers", figures.handlers)
            .add("threads", figures.threads)
            .add("begun_seconds", figures.begun_seconds)
            .add("seconds", figures.seconds)
            .add("bytes_per_handler", figures.bytes_per_handler)
            .add("goals", goals_json(bench::goals(figures))),
        formatted("%llu handlers wait after %.2f s, and take %.0f bytes of memory each\n\n",
                  static_cast<unsigned long long>(figures.handlers), figures.begun_seconds, figures.bytes_per_handler) +
            goals_text(bench::goals(figures)));
  return kOk;
}

constexpr Flag kDirFlag = {"--dir", "DIR", "where to work; default: the current directory"};
constexpr Flag kQuickFlag = {"--quick", "", "with a tenth of the jobs, in less than a minute"};

}  // namespace

std::vector<Command> bench_commands() {
  return {{.path = "bench engine",
           .summary = "Measure the embedded engine against the limits of this machine",
           .details = "Everything is durable. The limits are measured in the same run: a bare log that makes the same\n"
                      "writes and syncs, and a bare overwrite with fdatasync.",
           .flags = {kQuickFlag,
                     {"--delayed", "N", "load N delayed jobs and reopen with them; default: 10000000, quick 1000000"},
                     kDirFlag,
                     kJsonFlag},
           .run = bench_engine},
          {.path = "bench steps",
           .summary = "Measure how long others wait at most when something concerns all of ten million jobs",
           .details = "Steps of the engine's thread while the wall clock is set, an audit and a list run, all jobs become due at\n"
                      "once, and all have expired when a worker joins. On a busy machine the CPU time of a step says more\n"
                      "than how long it took.",
           .flags = {kQuickFlag, kDirFlag, kJsonFlag},
           .run = bench_steps},
          {.path = "bench worker",
           .summary = "Measure a worker with an empty handler against the limits of this machine",
           .flags = {kQuickFlag, kDirFlag, kJsonFlag},
           .run = bench_worker},
          {.path = "bench coroutines",
           .summary = "Measure thousands of handlers that wait, on two threads",
           .details = "Each is a coroutine that waits for a second; jobs and outcomes are durable.",
           .flags = {{"--handlers", "N", "how many; default: 10000"}, kDirFlag, kJsonFlag},
           .run = bench_coroutines},
          {.path = "bench server",
           .summary = "Measure `bide serve` over loopback HTTP against the limits of this machine",
           .details = "The server runs in a process of its own, on a store of its own; everything is durable. In the same run\n"
                      "the engine is measured in process, and the disk and a loopback round trip by themselves.",
           .flags = {kQuickFlag, kDirFlag, kJsonFlag},
           .run = bench_server},
          {.path = "bench broker",
           .summary = "Measure a broker's server through bide, against the same server without",
           .details = "In a corner of its own on the server (prefix bide-bench), which is removed afterwards. Bare publishes\n"
                      "with the client library alone take turns with bide's: same window, same size, all confirmed.",
           .flags = {kQuickFlag, kUrlFlag, kJsonFlag},
           .run = bench_broker}};
}

}  // namespace bide::cli
