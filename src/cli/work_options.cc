#include "cli/work_options.h"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <vector>

#include "cli/failure.h"
#include "cli/program_lookup.h"
#include "core/duration.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

constexpr std::uint64_t kLeastMemory = 16ull << 20;  // A shell needs a few MB to begin with.
constexpr std::uint64_t kMostMemory = 1ull << 50;
constexpr int kHeaviest = 1000;

// NAME or NAME=WEIGHT.
std::vector<WorkerQueue> queues_of(const Invocation& call) {
  std::vector<WorkerQueue> queues;
  std::set<std::string> names;
  for (const std::string& text : call.values("--queue")) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    int weight = 1;
    if (!core::is_name(name)) {
      fail_usage("--queue: invalid queue name " + core::quoted(name) +
                 "; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot nor a colon at the start");
    }
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

std::set<std::string> kinds_of(const Invocation& call) {
  std::set<std::string> kinds;
  for (const std::string& kind : call.values("--kind")) {
    if (!core::is_name(kind)) {
      fail_usage("--kind: invalid kind " + core::quoted(kind) +
                 "; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot nor a colon at the start");
    }
    kinds.insert(kind);
  }
  return kinds;
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

}  // namespace

WorkPlan work_plan(const Invocation& call) {
  WorkPlan plan;
  plan.exec = exec_of(call);
  plan.worker.queues = queues_of(call);
  plan.worker.concurrency = static_cast<int>(call.number("--concurrency", 0, 1, 10'000));
  plan.worker.lease = between(call, "--lease", plan.worker.lease, std::chrono::seconds(1), std::chrono::hours(1));
  plan.worker.grace = between(call, "--grace", plan.worker.grace, Milliseconds(0), std::chrono::hours(24));
  plan.kinds = kinds_of(call);
  plan.drain = call.has("--drain");
  require_program(plan.exec.command.front());
  return plan;
}

}  // namespace bide::cli
