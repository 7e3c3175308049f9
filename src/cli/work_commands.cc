// bide work: a worker whose handlers are programs.

#include <signal.h>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "bide/worker.h"
#include "cli/ask.h"
#include "cli/command_groups.h"
#include "cli/exec_handler.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/open_store.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

// NAME or NAME=WEIGHT.
std::vector<WorkerQueue> queues_of(const Invocation& call) {
  std::vector<WorkerQueue> queues;
  for (const std::string& text : call.values("--queue")) {
    const std::size_t equals = text.find('=');
    int weight = 1;
    if (equals != std::string::npos) {
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, weight);
      if (error != std::errc() || stop != end) fail_usage("--queue: " + core::quoted(text) + " is not NAME=WEIGHT");
    }
    queues.emplace_back(text.substr(0, equals), weight);
  }
  if (queues.empty()) queues.emplace_back("default");
  return queues;
}

// 500M, 2G, 1048576.
std::uint64_t memory_of(const Invocation& call) {
  const auto text = call.value("--memory");
  if (!text) return 0;
  std::uint64_t bytes = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, bytes);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit.empty() ? 0 : -1;
  if (error != std::errc() || shift < 0 || bytes == 0 || bytes > (1ull << 30)) {
    fail_usage("--memory: invalid size " + core::quoted(*text) + "; allowed are bytes, or a number with K, M or G");
  }
  return bytes << shift;
}

ExecOptions exec_of(const Invocation& call) {
  const auto program = call.value("--exec");
  const auto shell = call.value("--shell");
  if (program.has_value() == shell.has_value()) fail_usage("give one of --exec PROGRAM and --shell COMMAND");
  ExecOptions options;
  options.command = shell ? std::vector<std::string>{"/bin/sh", "-c", *shell, "sh"} : std::vector<std::string>{*program};
  options.command.insert(options.command.end(), call.arguments().begin(), call.arguments().end());
  options.memory_bytes = memory_of(call);
  if (const auto cpu = call.duration("--cpu")) {
    options.cpu_seconds = static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(*cpu).count());
    if (options.cpu_seconds == 0) fail_usage("--cpu: at least 1s");
  }
  return options;
}

bool has_work(Client& client, const std::vector<WorkerQueue>& mine) {
  for (const QueueInfo& queue :
       ask<std::vector<QueueInfo>>([&](auto done) { client.inspector().queues(std::move(done)); })) {
    const bool ours = std::any_of(mine.begin(), mine.end(), [&](const WorkerQueue& q) { return q.name == queue.name; });
    if (ours && queue.scheduled + queue.ready + queue.running > 0) return true;
  }
  return false;
}

int run(Worker& worker, Client& client, const std::vector<WorkerQueue>& queues, bool drain) {
  if (!drain) return worker.run();
  std::atomic<bool> ended = false;
  std::thread watcher([&] {
    while (!ended && has_work(client, queues)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    worker.stop();
  });
  const int exit_code = worker.run();
  ended = true;
  watcher.join();
  return exit_code;
}

int work(const Invocation& call) {
  const ExecOptions exec = exec_of(call);
  const std::vector<WorkerQueue> queues = queues_of(call);
  WorkerOptions options;
  options.queues = queues;
  options.concurrency = static_cast<int>(call.number("--concurrency", 0, 0, 10'000));
  options.lease = call.duration("--lease").value_or(options.lease);
  options.grace = call.duration("--grace").value_or(options.grace);
  Client client = open_client(call, Missing::kCreate);
  // A program that does not read its body must not end the worker.
  ::signal(SIGPIPE, SIG_IGN);

  Worker worker(client, options);
  std::vector<std::string> kinds = call.values("--kind");
  if (kinds.empty()) kinds.push_back("*");
  for (const std::string& kind : kinds) {
    worker.handle(kind, [&exec](Context& context) { return run_program(exec, context); });
  }
  std::mutex mutex;
  const auto write = [&](std::string_view line) {
    std::lock_guard lock(mutex);
    std::fprintf(stderr, "bide: %.*s\n", static_cast<int>(line.size()), line.data());
  };
  if (!call.has("--quiet")) worker.use(log_attempts(write));
  worker.on_problem(write);
  const int exit_code = run(worker, client, queues, call.has("--drain"));
  kill_all_programs();
  return exit_code;
}

}  // namespace

std::vector<Command> work_commands() {
  return {{.path = "work",
           .summary = "Run a program for each job, until SIGTERM",
           .details =
               "The program gets the body on stdin, and BIDE_JOB_ID, BIDE_KIND, BIDE_QUEUE, BIDE_ATTEMPT,\n"
               "BIDE_CONTENT_TYPE and BIDE_HEADER_NAME for each header in its environment.\n\n"
               "Exit status 0: done, and stdout is the result. 65: dead. 75 and all others: the attempt failed, and the\n"
               "job's retry policy decides; the end of stderr is the error. The program and all it has started is\n"
               "stopped at the job's time limit.",
           .arguments = {{"ARGUMENT", "of the program", true, true}},
           .flags = {{"--exec", "PROGRAM", "the program"},
                     {"--shell", "COMMAND", "or a command for /bin/sh"},
                     {"--queue", "NAME[=WEIGHT]", "where to take jobs from; may be given several times", true},
                     {"--kind", "KIND", "only these kinds; may be given several times; default: all", true},
                     {"--concurrency", "N", "programs at once; default: one for each core"},
                     {"--memory", "SIZE", "address space of a program at most: 500M, 2G"},
                     {"--cpu", "DURATION", "CPU time of a program at most"},
                     {"--lease", "DURATION", "how soon a dead worker is noticed; default: 15s"},
                     {"--grace", "DURATION", "to finish after SIGTERM; default: 25s"},
                     {"--drain", "", "stop when no job is left in the queues"},
                     {"--quiet", "", "no line for each attempt"},
                     kUrlFlag},
           .run = work}};
}

}  // namespace bide::cli
