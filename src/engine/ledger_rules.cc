// Ledger, the rules of queues: put, listed, and what they refuse or hold.

#include "core/duration.h"
#include "core/queue_rules.h"
#include "core/quote.h"
#include "engine/ledger.h"

namespace bide::engine {

namespace {

constexpr std::uint64_t kMostPlaces = 10'000;  // Counted, for an explanation.

std::string text_of(const RateLimit& rate) {
  return std::to_string(rate.count) + " in " + core::format_duration(rate.period);
}

}  // namespace

Status Ledger::put_rules(const QueueRules& rules) {
  if (Status valid = core::validate(rules); !valid) return valid;
  const bool has_any = core::has_any(rules);
  const Names& names = state_.queues().names();
  if (has_any && names.full() && !names.find(rules.queue)) return too_many_names();
  if (!has_any && !state_.ruled().contains(rules.queue)) return {};
  std::size_t bytes = 512 + rules.queue.size();
  for (const auto& [group, weight] : rules.weights) bytes += group.size() + 8;
  if (Status roomy = make_room(bytes, true); !roomy) return roomy;
  append(*journal_, rules);
  needs_sync_ = true;
  if (Status applied = state_.apply(rules); !applied) return applied;
  if (state_.queues().has_new()) attach_to_new_queues();
  return {};
}

std::vector<QueueRules> Ledger::rules() const {
  std::vector<QueueRules> all;
  for (const auto& [name, number] : state_.ruled()) all.push_back(state_.queues()[number].limits->rules);
  return all;
}

Status Ledger::admit_to(std::string_view name) {
  if (state_.ruled().empty()) return {};
  const auto known = state_.ruled().find(name);
  if (known == state_.ruled().end()) return {};
  const Queue& queue = state_.queues()[known->second];
  const QueueRules& rules = queue.limits->rules;
  const auto full = [&](const std::string& holds, const char* rule) {
    return Error{ErrorCode::kOverloaded, "queue " + core::quoted(name) + " " + holds + ", as its rules allow at most (" + rule +
                                             "): try again when some of its jobs have run"};
  };
  if (rules.most_jobs != 0 && queue.waiting() >= rules.most_jobs) {
    return full("holds " + std::to_string(queue.waiting()) + " waiting job(s)", "most_jobs");
  }
  if (rules.most_bytes != 0 && queue.waiting_bytes >= rules.most_bytes) {
    return full("holds " + std::to_string(queue.waiting_bytes) + " bytes of waiting jobs", "most_bytes");
  }
  if (rules.oldest.count() == 0) return {};
  const auto [seen, is_first] = oldest_in_step_.try_emplace(known->second);
  if (is_first) seen->second = state_.oldest_ready(known->second);
  const std::optional<std::int64_t> oldest = seen->second;
  if (!oldest || now_ms() - *oldest < rules.oldest.count()) return {};
  return full("has had a job waiting for " + core::rough_duration(Milliseconds(now_ms() - *oldest)), "oldest");
}

std::optional<Explanation> Ledger::held_by_rules(Slot slot) {
  const auto number = static_cast<std::uint16_t>(state_[slot].queue);
  const Queues& queues = state_.queues();
  const Queue& queue = queues[number];
  if (!queue.limits) return std::nullopt;
  const QueueRules& rules = queue.limits->rules;
  const std::string name = "queue " + core::quoted(queues.names()[number]);
  const std::string ready = "; " + std::to_string(queue.count(EntryState::kReady)) + " job(s) are ready there.";
  if (queues.is_at_once(queue)) {
    return Explanation{"at_once", "It is ready; " + std::to_string(queue.starting()) + " of " + std::to_string(rules.at_once) +
                                      " running in " + name + ready};
  }
  if (queues.is_at_rate(queue)) {
    const std::int64_t wait_ms = queues.next_start(queue) + state_.shift_ms() - now_ms();
    return Explanation{"rate", "It is ready; " + name + " starts at most " + text_of(rules.rate) + ", the next one in " +
                                   core::rough_duration(Milliseconds(wait_ms)) + ready};
  }
  const GroupNumber group_number = state_.group_of(slot);
  if (!queue.lines || group_number == kNoGroup) return std::nullopt;
  const Group& group = state_.groups()[group_number];
  const QueueLines::Now now = queues.now_of(queue);
  const std::string in_group = "group " + core::printable(group.name);
  const auto place = queue.lines->place_of(slot, kMostPlaces);
  const std::string position =
      ", position " + (place ? std::to_string(*place + 1) : "beyond " + std::to_string(kMostPlaces)) + ".";
  if (queue.lines->is_at_once(group, now)) {
    return Explanation{"group_at_once", "It is ready; " + std::to_string(group.starting()) + " of " +
                                            std::to_string(rules.group_at_once) + " running in " + in_group + position};
  }
  if (queue.lines->is_at_rate(group, now)) {
    const std::int64_t wait_ms = group.starts.next_ms(rules.group_rate, now.span_ms, group.taken) - now.span_ms;
    return Explanation{"group_rate", "It is ready; " + in_group + " of " + name + " starts at most " + text_of(rules.group_rate) +
                                         ", the next one in " + core::rough_duration(Milliseconds(wait_ms)) + position};
  }
  return std::nullopt;
}

}  // namespace bide::engine
