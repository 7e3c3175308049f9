#include "cli/exec_handler.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cli/failure.h"
#include "core/duration.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

constexpr std::uint64_t kLeastMemory = 16ull << 20;  // A shell needs a few MB to begin with.
constexpr std::uint64_t kMostMemory = 1ull << 50;
constexpr int kHeaviest = 1000;
constexpr std::string_view kDefaultPath = "/bin:/usr/bin";  // What glibc takes when there is no $PATH.

// NAME or NAME=WEIGHT.
std::vector<WorkerQueue> worker_queues(const Invocation& call) {
  std::vector<WorkerQueue> queues;
  std::set<std::string> names;
  for (const std::string& text : call.values("--queue")) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    int weight = 1;
    check_name("--queue", "queue name", name);
    if (equals != std::string::npos) {
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, weight);
      if (error != std::errc() || stop != end || weight < 1 || weight > kHeaviest) {
        fail_usage("--queue: " + core::quoted(text) + " is not NAME=WEIGHT with a weight from 1 to " +
                   std::to_string(kHeaviest));
      }
    }
    if (!names.insert(name).second) fail_usage("--queue: " + core::quoted(name) + " is given twice");
    queues.emplace_back(name, weight);
  }
  if (queues.empty()) queues.emplace_back("default");
  return queues;
}

// 500M, 2G, 33554432.
std::uint64_t memory_of(const Invocation& call) {
  const auto text = call.value("--memory");
  if (!text) return 0;
  std::uint64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit.empty() ? 0 : -1;
  const bool fits = error == std::errc() && shift >= 0 && number <= kMostMemory >> shift;
  const std::uint64_t bytes = fits ? number << shift : 0;
  if (bytes < kLeastMemory) {
    fail_usage("--memory: invalid size " + core::quoted(*text) +
               "; allowed are bytes, or a number with K, M or G, from 16M, with less hardly any program starts");
  }
  return bytes;
}

Milliseconds between(const Invocation& call, std::string_view flag, Milliseconds otherwise, Milliseconds shortest,
                     Milliseconds longest) {
  const Milliseconds given = call.duration(flag).value_or(otherwise);
  if (given < shortest || given > longest) {
    fail_usage(std::string(flag) + ": " + core::format_duration(given) + " is out of range; allowed is " +
               core::format_duration(shortest) + " to " + core::format_duration(longest));
  }
  return given;
}

ExecOptions exec_of(const Invocation& call) {
  const auto program = call.value("--exec");
  const auto shell = call.value("--shell");
  if (program.has_value() == shell.has_value()) fail_usage("give one of --exec PROGRAM and --shell COMMAND");
  ExecOptions options;
  options.command =
      shell ? std::vector<std::string>{"/bin/sh", "-c", *shell, "sh"} : std::vector<std::string>{*program};
  options.command.insert(options.command.end(), call.arguments().begin(), call.arguments().end());
  options.memory_bytes = memory_of(call);
  if (call.has("--cpu")) {
    const Milliseconds cpu = between(call, "--cpu", {}, std::chrono::seconds(1), std::chrono::hours(24 * 365));
    options.cpu_seconds = static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(cpu).count());
  }
  return options;
}

// Where execvp would look: a name with a slash is a path, any other is looked for along $PATH.
std::vector<std::string> candidates(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  const char* path = std::getenv("PATH");
  std::string_view left = path == nullptr ? kDefaultPath : std::string_view(path);
  std::vector<std::string> paths;
  for (;;) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string folder(left.substr(0, end));
    paths.push_back(folder.empty() ? name : folder + "/" + name);
    if (end == left.size()) return paths;
    left.remove_prefix(end + 1);
  }
}

// Asked before the first job is taken, so that a slip of the pen costs no attempts.
//
// Throws Failure: 66 there is no such program, 77 there is but it cannot be executed.
void require_program(const std::string& name) {
  if (name.empty()) fail_usage("--exec: the name of the program is empty");
  std::string found;
  for (const std::string& path : candidates(name)) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0) return;
    if (found.empty()) found = path;
  }
  if (found.empty()) {
    const bool path_given = name.find('/') != std::string::npos;
    throw Failure{kNotThere, "--exec: there is no program " + core::quoted(name) +
                                 (path_given ? "" : " in $PATH; a program in this folder is ./NAME") +
                                 "; for a command with spaces use --shell"};
  }
  throw Failure{kNotPermitted, "--exec: " + core::quoted(found) +
                                   " cannot be executed; it must be a file with the right to " +
                                   "execute it (chmod +x)"};
}

}  // namespace

WorkPlan work_plan(const Invocation& call) {
  WorkPlan plan;
  plan.exec = exec_of(call);
  plan.worker.queues = worker_queues(call);
  plan.worker.concurrency = static_cast<int>(call.number("--concurrency", 0, 1, 10'000));
  plan.worker.lease = between(call, "--lease", plan.worker.lease, std::chrono::seconds(1), std::chrono::hours(1));
  plan.worker.grace = between(call, "--grace", plan.worker.grace, Milliseconds(0), std::chrono::hours(24));
  for (const std::string& kind : call.values("--kind")) {
    check_name("--kind", "kind", kind);
    plan.kinds.insert(kind);
  }
  plan.drain = call.has("--drain");
  require_program(plan.exec.command.front());
  return plan;
}

}  // namespace bide::cli
