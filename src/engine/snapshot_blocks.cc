#include "engine/snapshot_blocks.h"

#include <utility>

#include "core/queue_rules.h"
#include "engine/journal/record_fields.h"

namespace bide::engine {

using journal::Decoder;
using journal::Encoder;

namespace {

constexpr std::size_t kKeysAPiece = 4096;

enum RelationFlag : std::uint8_t { kAfterDeath = 3, kHasFlow = 4 };

}  // namespace

void encode_rules(Encoder& out, const State& state) {
  out.count(state.ruled().size());
  for (const auto& [queue, number] : state.ruled()) {
    journal::put_rules(out, state.queues()[number].limits->rules);
    out.i64(state.full_at_ns(state.queues()[number].limits->starts));
  }
}

bool decode_rules(Decoder& in, State& state) {
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    QueueRules rules;
    if (journal::get_rules(in, rules) != nullptr) return false;
    const std::int64_t full_at_ns = in.i64();
    if (!in.ok() || !core::has_any(rules)) return false;
    if (state.queues().names().full() && !state.queues().names().find(rules.queue)) return false;
    if (!state.apply(rules)) return false;
    state.restore_full_at(state.ruled().at(rules.queue), full_at_ns);
  }
  return in.done();
}

// Those that have started so much lately that it matters. A group outlives its jobs, and may outlive the rules of its queue.
void encode_groups(Encoder& out, const State& state) {
  const auto for_each = [&](auto&& take) {
    for (GroupNumber number = 1; number < state.groups().size(); ++number) {
      const Group& group = state.groups()[number];
      const bool is_limited = !group.name.empty() && state.queues().names().exists(group.queue) && state.queues()[group.queue].limits;
      const std::int64_t full_at_ns = is_limited ? state.full_at_ns(group.starts) : 0;
      if (full_at_ns != 0) take(group, full_at_ns);
    }
  };
  std::uint64_t count = 0;
  for_each([&](const Group&, std::int64_t) { ++count; });
  out.count(count);
  for_each([&](const Group& group, std::int64_t full_at_ns) {
    out.string(state.queues().names()[group.queue]);
    out.string(group.name);
    out.i64(full_at_ns);
  });
}

bool decode_groups(Decoder& in, State& state) {
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    const std::string_view queue = in.string();
    const std::string_view group = in.string();
    const std::int64_t full_at_ns = in.i64();
    const auto number = state.queues().names().find(queue);
    if (!in.ok() || group.empty()) return false;
    if (number) state.restore_full_at(*number, group, full_at_ns);
  }
  return in.done();
}

bool encode_held_keys(std::string& block, const State& state, std::string& cursor, std::int64_t shift_ms) {
  Encoder out(block);
  return state.held_keys().walk(cursor, kKeysAPiece, [&](const std::string& key, const JobId& id, std::int64_t until_ms) {
    out.string(key);
    out.id(id);
    out.i64(until_ms + shift_ms);
  });
}

void encode_steps(std::string& block, const State& state, Slot slot) {
  const SavedSteps::Steps* steps = state.steps().find(slot);
  if (steps == nullptr) return;
  Encoder out(block);
  out.id(state[slot].id);
  out.count(steps->size());
  for (const Step& step : *steps) {
    out.string(step.name);
    out.string(step.result);
  }
}

void encode_relations(std::string& block, const State& state, Slot slot) {
  if (!state[slot].has_relations) return;
  const Relations& relations = state.relations();
  const JobId flow = relations.flow(slot);
  Encoder out(block);
  out.id(state[slot].id);
  out.u8(static_cast<std::uint8_t>(static_cast<std::uint8_t>(relations.after_death(slot)) | (flow.is_nil() ? 0 : kHasFlow)));
  if (!flow.is_nil()) out.id(flow);
  std::uint64_t waiters = 0;
  relations.for_each_waiter(slot, [&](Slot) { ++waiters; });
  out.count(waiters);
  relations.for_each_waiter(slot, [&](Slot waiter) { out.id(state[waiter].id); });
}

bool decode_held_keys(Decoder& in, State& state) {
  while (!in.done()) {
    const std::string_view key = in.string();
    const JobId id = in.id();
    const std::int64_t until_ms = in.i64();
    if (!in.ok()) return false;
    state.restore_held_key(key, id, until_ms);
  }
  return true;
}

bool decode_steps(Decoder& in, State& state) {
  while (!in.done()) {
    const JobId id = in.id();
    for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
      Step step;
      step.name = in.string();
      step.result = in.string();
      if (in.ok()) state.restore_step(id, std::move(step));
    }
    if (!in.ok()) return false;
  }
  return true;
}

bool decode_relations(Decoder& in, State& state, bool waits) {
  while (!in.done()) {
    const JobId id = in.id();
    const std::uint8_t flags = in.u8();
    const auto after_death = static_cast<AfterDeath>(flags & kAfterDeath);
    if (!in.ok() || flags > (kAfterDeath | kHasFlow) || after_death > AfterDeath::kRun) return false;
    const JobId flow = flags & kHasFlow ? in.id() : JobId();
    if (!waits) state.restore_relations(id, flow, after_death);
    for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
      const JobId waiter = in.id();
      if (waits) state.restore_wait(id, waiter);
    }
    if (!in.ok()) return false;
  }
  return true;
}

}  // namespace bide::engine
