// bide queue rules.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/duration.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/rate_text.h"
#include "wire/rules_json.h"

namespace bide::cli {

namespace {

constexpr std::int64_t kLargestCount = std::int64_t{1} << 53;

std::vector<QueueRules> rules_of(const Client& client) {
  return ask<std::vector<QueueRules>>([&](auto done) { client.inspector().rules(std::move(done)); });
}

QueueRules rules_of(const Client& client, const std::string& queue) {
  for (QueueRules& rules : rules_of(client)) {
    if (rules.queue == queue) return std::move(rules);
  }
  return {.queue = queue};
}

void take_count(const Invocation& call, std::string_view flag, std::uint32_t& out) {
  out = static_cast<std::uint32_t>(call.number(flag, out, 0, std::numeric_limits<std::uint32_t>::max()));
}

void take_count(const Invocation& call, std::string_view flag, std::uint64_t& out) {
  out = static_cast<std::uint64_t>(call.number(flag, static_cast<std::int64_t>(out), 0, kLargestCount));
}

void take_rate(const Invocation& call, std::string_view flag, std::string_view burst_flag, RateLimit& out) {
  if (const auto text = call.value(flag)) {
    const auto rate = *text == core::format_rate({}) ? RateLimit() : core::parse_rate(*text);
    if (!rate) fail_usage(std::string(flag) + ": " + rate.error().message + ", or none");
    out = *rate;
  }
  if (!call.has(burst_flag)) return;
  if (out.count == 0) fail_usage(std::string(burst_flag) + ": there is no rate that it could belong to; give " + std::string(flag));
  out.burst = static_cast<std::uint32_t>(call.number(burst_flag, 1, 1, std::numeric_limits<std::uint32_t>::max()));
}

void take_weights(const Invocation& call, std::vector<std::pair<std::string, int>>& weights) {
  for (const std::string& text : call.values("--weight")) {
    const std::size_t equals = text.rfind('=');
    const auto weight = equals == std::string::npos ? std::nullopt : core::parse_integer<int>(std::string_view(text).substr(equals + 1));
    if (!weight || *weight < 1 || *weight > 100 || equals == 0) {
      fail_usage("--weight: " + core::quoted(text) + " is not GROUP=N with a whole number from 1 to 100");
    }
    const std::string group = text.substr(0, equals);
    std::erase_if(weights, [&](const auto& each) { return each.first == group; });
    if (*weight != 1) weights.emplace_back(group, *weight);  // As all others have it.
  }
}

void change(const Invocation& call, QueueRules& rules) {
  if (call.has("--fair") && call.has("--no-fair")) fail_usage("--fair and --no-fair: give one of them, not both");
  take_count(call, "--at-once", rules.at_once);
  take_rate(call, "--rate", "--burst", rules.rate);
  take_count(call, "--group-at-once", rules.group_at_once);
  take_rate(call, "--group-rate", "--group-burst", rules.group_rate);
  rules.fair = call.has("--fair") || (rules.fair && !call.has("--no-fair"));
  if (!rules.fair) rules.weights.clear();  // They are of turns.
  take_weights(call, rules.weights);
  rules.ageing = call.duration("--ageing").value_or(rules.ageing);
  take_count(call, "--most-jobs", rules.most_jobs);
  take_count(call, "--most-bytes", rules.most_bytes);
  rules.oldest = call.duration("--oldest").value_or(rules.oldest);
}

// One line for each rule that there is.
std::string rules_text(const QueueRules& rules) {
  Table table;
  const auto fact = [&](std::string_view name, const std::string& text) { table.row({"  " + std::string(name), text}); };
  const auto count = [&](std::string_view name, std::uint64_t number) {
    if (number != 0) fact(name, std::to_string(number));
  };
  const auto duration = [&](std::string_view name, Milliseconds span) {
    if (span.count() != 0) fact(name, core::format_duration(span));
  };
  const auto rate = [&](std::string_view name, const RateLimit& limit) {
    if (limit.count != 0) fact(name, core::format_rate(limit));
  };
  count("at once", rules.at_once);
  rate("rate", rules.rate);
  count("of a group at once", rules.group_at_once);
  rate("rate of a group", rules.group_rate);
  if (rules.fair) fact("groups", "take turns");
  for (const auto& [group, weight] : rules.weights) fact("turns of " + group, std::to_string(weight));
  duration("one priority higher after", rules.ageing);
  count("most jobs that wait", rules.most_jobs);
  count("most bytes that wait", rules.most_bytes);
  duration("refuses more when one waits for", rules.oldest);
  const std::string text = table.text();
  if (text.empty()) return "queue " + for_people(rules.queue) + " has no rules\n";
  return "queue " + for_people(rules.queue) + "\n" + text;
}

int list_rules(const Invocation& call) {
  const Client client = open_client(call, Missing::kRefuse);
  const std::vector<QueueRules> all = rules_of(client);
  std::string text = all.empty() ? "no queue has rules; one gets them by, for example: bide queue rules mail --at-once 50\n" : "";
  for (const QueueRules& rules : all) text += rules_text(rules);
  print(call, JsonObject().add("rules", JsonArray(all)), text);
  return kOk;
}

// Flags that say what to look at, and not what to change.
bool changes_anything(const Invocation& call) {
  return std::any_of(call.command().flags.begin(), call.command().flags.end(), [&](const Flag& flag) {
    return flag.name != kUrlFlag.name && flag.name != kJsonFlag.name && call.has(flag.name);
  });
}

int queue_rules(const Invocation& call) {
  const bool changes = changes_anything(call);
  if (call.arguments().empty()) {
    if (changes) fail_usage("missing QUEUE: whose rules are to be changed (usage: " + usage(call.command()) + ")");
    return list_rules(call);
  }
  const std::string queue = call.argument(0);
  check_name("QUEUE", "queue name", queue);
  if (changes) {
    QueueRules unused;
    if (!call.has("--burst") && !call.has("--group-burst")) change(call, unused);  // Before anything is opened.
  }
  const Client client = open_client(call, changes ? Missing::kCreate : Missing::kRefuse);
  QueueRules rules = call.has("--clear") ? QueueRules{.queue = queue} : rules_of(client, queue);
  if (changes) {
    change(call, rules);
    ask<void>([&](auto done) { client.inspector().put_rules(rules, std::move(done)); });
  }
  print(call, JsonObject().add("rules", rules), rules_text(rules));
  return kOk;
}

}  // namespace

std::vector<Command> queue_rules_commands() {
  return {
      {.path = "queue rules",
       .summary = "Show or change the limits of a queue and of the groups in it; without QUEUE, those of all queues",
       .details =
           "They hold for all workers together, and from the next job on. What is not named stays as it is; 0, or none for a\n"
           "rate, takes a rule away, --clear all of them. Jobs say with --group which group they belong to.",
       .arguments = {{"QUEUE", "its name", true}},
       .flags = {{"--at-once", "N", "at most so many jobs running"},
                 {"--rate", "RATE", "at most so many begin: 10/s, 100/5m, 10/s,burst=20, none"},
                 {"--burst", "N", "of that rate, so many at once after a pause; default: 1"},
                 {"--group-at-once", "N", "at most so many jobs of each group running"},
                 {"--group-rate", "RATE", "at most so many of each group begin"},
                 {"--group-burst", "N", "of that rate, so many at once after a pause; default: 1"},
                 {"--fair", "", "groups take turns, however many jobs each has"},
                 {"--no-fair", "", "jobs run in the order in which they are due; weights are forgotten"},
                 {"--weight", "GROUP=N", "this group has so many turns, 1 to 100; may be given several times", true},
                 {"--ageing", "DURATION", "each such time of waiting counts as one priority higher"},
                 {"--most-jobs", "N", "with so many waiting, enqueuing is refused"},
                 {"--most-bytes", "N", "with bodies of so many bytes waiting, enqueuing is refused"},
                 {"--oldest", "DURATION", "when one has waited for so long, enqueuing is refused"},
                 {"--clear", "", "take all rules away, before those that are given here"},
                 kUrlFlag,
                 kJsonFlag},
       .run = queue_rules},
  };
}

}  // namespace bide::cli
