// Jobs with chosen ids, each sent twice, with full load in between, and a third time after a restart: every id is one job.
//
//   remembered_ids_run [--ids N] [--seconds S] [--chosen] [--directory PATH]
//
// --chosen: the load has chosen ids too. Prints what the ids cost, and fails when a job was made a second time.

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/producers.h"
#include "bench/resources.h"
#include "bench/settlers.h"
#include "bide/wait.h"
#include "engine/engine.h"
#include "support/temporary_directory.h"

namespace {

using namespace bide;

constexpr std::uint64_t kBatch = 1000;

struct Settings {
  std::uint64_t ids = 1'000'000;
  double seconds = 120;
  bool chosen = false;
  std::string directory;
};

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "remembered_ids_run: %s\n", text.c_str());
  std::exit(1);
}

JobId make_id(std::uint64_t series, std::uint64_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(series >> (8 * i));
    bytes[8 + i] = static_cast<std::uint8_t>((number * 0x9e37'79b9'7f4a'7c15ull) >> (8 * i));
  }
  return JobId(bytes);
}

std::unique_ptr<engine::Engine> open(const std::string& directory) {
  auto opened = engine::Engine::open({.directory = directory});
  if (!opened) fail(opened.error().message);
  return std::move(*opened);
}

// How many of them were there already.
std::uint64_t send_all(Broker& broker, std::uint64_t ids) {
  std::uint64_t existed = 0;
  for (std::uint64_t next = 0; next < ids;) {
    std::vector<Job> jobs;
    for (; next < ids && jobs.size() < kBatch; ++next) {
      jobs.push_back(Job{.id = make_id(1, next), .kind = "once", .queue = "once", .body = "once"});
    }
    const auto results = wait<std::vector<Result<Enqueued>>>(
        [&](auto done) { broker.enqueue(std::move(jobs), std::move(done)); });
    if (!results) fail(results.error().message);
    for (const auto& result : *results) {
      if (!result) fail(result.error().message);
      existed += result->existed ? 1 : 0;
    }
  }
  return existed;
}

AuditReport audit(engine::Engine& engine) {
  const auto report = wait<AuditReport>([&](auto done) { engine.audit(std::move(done)); });
  if (!report) fail(report.error().message);
  for (const std::string& problem : report->problems) fail(problem);
  return *report;
}

// Jobs that were done meanwhile.
std::uint64_t load(engine::Engine& engine, const Settings& settings) {
  const bench::Stopwatch watch;
  std::uint64_t jobs = 0;
  while (watch.seconds() < settings.seconds) {
    constexpr std::uint64_t kRound = 200'000;
    bench::Settlers settlers(engine, "load", 2, 32'768);
    const Status produced = bench::produce(engine, {.jobs = kRound, .threads = 2}, [&](std::uint64_t number) {
      Job job = bench::make_bench_job(number, "load");
      if (settings.chosen) job.id = make_id(2, jobs + number);
      return job;
    });
    if (!produced) fail(produced.error().message);
    if (Status settled = settlers.wait_for(kRound); !settled) fail(settled.error().message);
    jobs += kRound;
  }
  std::printf("load: %" PRIu64 " jobs in %.1f s, %.0f a second\n", jobs, watch.seconds(),
              static_cast<double>(jobs) / watch.seconds());
  return jobs;
}

void tell_cost(const AuditReport& report) {
  const double ids = static_cast<double>(report.details.at("ids_remembered"));
  const double memory = static_cast<double>(report.details.at("ids_memory_bytes"));
  const double disk = static_cast<double>(report.details.at("ids_disk_bytes"));
  std::printf("remembered: %.0f ids and %" PRIu64 " settles, %.1f MB of memory, %.1f MB on disk", ids, report.done,
              memory / 1e6, disk / 1e6);
  std::printf("; for each id %.1f and %.1f bytes\n", memory / ids, disk / ids);
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto value = [&]() -> const char* {
      if (i + 1 == argc) fail(std::string(flag) + " wants a value");
      return argv[++i];
    };
    if (flag == "--ids") {
      settings.ids = std::strtoull(value(), nullptr, 10);
    } else if (flag == "--seconds") {
      settings.seconds = std::strtod(value(), nullptr);
    } else if (flag == "--chosen") {
      settings.chosen = true;
    } else if (flag == "--directory") {
      settings.directory = value();
    } else {
      fail("unknown: " + std::string(flag));
    }
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  const support::TemporaryDirectory folder;
  const std::string directory = settings.directory.empty() ? folder.path() + "/store" : settings.directory;

  auto engine = open(directory);
  {
    bench::Settlers settlers(*engine, "once", 2, 32'768);
    if (const auto existed = send_all(*engine, settings.ids)) fail(std::to_string(existed) + " ids were there at first");
    if (Status settled = settlers.wait_for(settings.ids); !settled) fail(settled.error().message);
  }
  tell_cost(audit(*engine));
  const std::uint64_t load_jobs = load(*engine, settings);
  tell_cost(audit(*engine));
  for (const char* when : {"sent again", "sent again after a restart"}) {
    const bench::Stopwatch watch;
    const std::uint64_t existed = send_all(*engine, settings.ids);
    const AuditReport report = audit(*engine);
    std::printf("%s: %" PRIu64 " of %" PRIu64 " ids were known, in %.1f s; %" PRIu64 " jobs accepted in all\n", when,
                existed, settings.ids, watch.seconds(), report.accepted);
    if (existed != settings.ids || report.accepted != settings.ids + load_jobs) fail("a job was made a second time");
    if (report.details.at("ids_forgotten_early") != 0) fail("ids were forgotten early");
    engine.reset();
    const bench::Stopwatch opening;
    engine = open(directory);
    std::printf("opened in %.1f s\n", opening.seconds());
  }
  std::puts("every id is one job");
  return 0;
}
