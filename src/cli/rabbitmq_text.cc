#include "cli/rabbitmq_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "brokers/rabbitmq/drift.h"
#include "cli/output.h"

namespace bide::cli {

using namespace brokers::rabbitmq;

namespace {

std::string_view name_of(Presence presence) {
  constexpr std::array<std::string_view, 4> kNames = {"missing", "there", "differs", "unknown"};
  return kNames[static_cast<std::size_t>(presence)];
}

std::string_view name_of(Finding::Weight weight) {
  constexpr std::array<std::string_view, 4> kNames = {"ok", "ask", "warning", "problem"};
  return kNames[static_cast<std::size_t>(weight)];
}

Style style_of(Finding::Weight weight) {
  constexpr std::array kStyles = {Style::kGreen, Style::kPlain, Style::kYellow, Style::kRed};
  return kStyles[static_cast<std::size_t>(weight)];
}

// The arguments that bide gives are texts, numbers and flags.
std::string field_json(const Field& field) {
  if (field.text() != nullptr) return json_string(*field.text());
  if (field.number() != nullptr) return std::to_string(*field.number());
  if (const bool* flag = std::get_if<bool>(&field.value)) return *flag ? "true" : "false";
  return "null";
}

JsonObject arguments_json(const FieldTable& arguments) {
  JsonObject json;
  for (const auto& [name, field] : arguments) json.raw(name, field_json(field));
  return json;
}

std::string arguments_text(const FieldTable& arguments) {
  std::string text;
  for (const auto& [name, field] : arguments) {
    text += (text.empty() ? "" : " ") + name + "=" + (field.text() != nullptr ? *field.text() : field_json(field));
  }
  return text;
}

JsonObject& add_examined(JsonObject& json, const Examined& examined) {
  json.add("state", name_of(examined.presence));
  JsonArray differences;
  for (const Difference& difference : examined.differences) {
    differences.add(JsonObject()
                        .add("argument", difference.argument)
                        .add("wanted", difference.wanted)
                        .add("current", difference.current));
  }
  return json.add("differences", differences).add("server_said", examined.words);
}

std::string state_text(const Examined& examined) {
  std::string text(name_of(examined.presence));
  for (const Difference& difference : examined.differences) {
    text += " " + difference.argument + "=" + difference.current;
  }
  return text;
}

}  // namespace

JsonObject to_json(const Plan& plan) {
  JsonArray exchanges;
  JsonArray queues;
  JsonArray bindings;
  for (const PlannedExchange& exchange : plan.exchanges) {
    JsonObject json;
    json.add("name", exchange.spec.name).add("type", exchange.spec.type);
    json.add("arguments", arguments_json(exchange.spec.arguments));
    exchanges.add(add_examined(json, exchange.examined));
  }
  for (const PlannedQueue& queue : plan.queues) {
    JsonObject json;
    json.add("name", queue.spec.name).add("arguments", arguments_json(queue.spec.arguments));
    queues.add(add_examined(json, queue.examined));
  }
  for (const BindingSpec& binding : plan.bindings) {
    bindings.add(JsonObject()
                     .add("source", binding.source)
                     .add("destination", binding.destination)
                     .add("destination_type", binding.to_exchange ? "exchange" : "queue")
                     .add("key", binding.key));
  }
  return JsonObject()
      .add("missing", plan.missing())
      .add("differing", plan.differing())
      .add("exchanges", exchanges)
      .add("queues", queues)
      .add("bindings", bindings);
}

std::string plan_text(const Plan& plan) {
  Table table({"what", "name", "state", "arguments"});
  for (const PlannedExchange& exchange : plan.exchanges) {
    table.row({exchange.spec.type + " exchange", exchange.spec.name, state_text(exchange.examined),
               arguments_text(exchange.spec.arguments)});
  }
  for (const PlannedQueue& queue : plan.queues) {
    table.row({"queue", queue.spec.name, state_text(queue.examined), arguments_text(queue.spec.arguments)});
  }
  std::string text = table.text() + "\n" + std::to_string(plan.missing()) + " missing, " +
                     std::to_string(plan.differing()) + " with other arguments, " +
                     std::to_string(plan.bindings.size()) +
                     " bindings (AMQP does not show bindings; making one that is there changes nothing)\n";
  for (const PlannedQueue& queue : plan.queues) {
    for (const Difference& difference : queue.examined.differences) {
      text += for_people(queue.spec.name + ": " + describe(difference)) + "\n";
    }
  }
  return text;
}

JsonObject to_json(const std::vector<Finding>& findings) {
  JsonArray all;
  std::array<std::size_t, 4> counts{};
  for (const Finding& finding : findings) {
    counts[static_cast<std::size_t>(finding.weight)] += 1;
    all.add(JsonObject()
                .add("weight", name_of(finding.weight))
                .add("check", finding.check)
                .add("about", finding.about)
                .add("text", finding.text)
                .add("remedy", finding.remedy));
  }
  return JsonObject().add("problems", counts[3]).add("warnings", counts[2]).add("findings", all);
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::vector<const Finding*> sorted;
  for (const Finding& finding : findings) sorted.push_back(&finding);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Finding* a, const Finding* b) { return a->weight > b->weight; });
  std::string text;
  for (const Finding* finding : sorted) {
    std::string name(name_of(finding->weight));
    name.resize(8, ' ');
    const std::string line = (finding->about.empty() ? "" : finding->about + ": ") + finding->text;
    text += styled(style_of(finding->weight), name) + " " + for_people(line) + "\n";
    if (!finding->remedy.empty()) text += "         -> " + for_people(finding->remedy) + "\n";
  }
  return text;
}

JsonObject to_json(const std::vector<GcEntry>& entries, bool dry_run) {
  JsonArray removed;
  JsonArray kept;
  for (const GcEntry& entry : entries) {
    if (entry.removed) {
      removed.add(entry.queue);
    } else {
      kept.add(JsonObject().add("queue", entry.queue).add("why", entry.why));
    }
  }
  return JsonObject().add("dry_run", dry_run).add("removed", removed).add("kept", kept);
}

std::string gc_text(const std::vector<GcEntry>& entries, bool dry_run) {
  if (entries.empty()) return "there are no delay queues\n";
  std::string text;
  for (const GcEntry& entry : entries) {
    const std::string what = entry.removed ? (dry_run ? "would be removed" : "removed") : "kept: " + entry.why;
    text += for_people(entry.queue + "  " + what) + "\n";
  }
  return text;
}

}  // namespace bide::cli
