// POST /v1/leases/settle: settles one lease or many, in one call of the broker.

#include <utility>

#include "core/broker_answers.h"
#include "core/retry_decision.h"
#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "wire/settle_json.h"

namespace bide::server {

namespace {

using wire::SettleItem;

struct SettleCall {
  SettleCall(State given, Identity asking, Reply answer)
      : state(std::move(given)), caller(std::move(asking)), reply(std::move(answer)) {}

  State state;
  Identity caller;
  Reply reply;
  wire::SettleRequest request = {};
  std::vector<LeaseOut> known = {};
  std::vector<std::size_t> sent = {};  // Items that the broker was given.
  std::vector<std::size_t> to_look_up = {};
};
using SettlePtr = std::shared_ptr<SettleCall>;

void answer(SettleCall& call) {
  if (call.request.one && call.request.items[0].problem) return refuse(call.reply, *call.request.items[0].problem);
  call.reply.send(json_response(200, wire::settled_json(call.request)));
}

std::string_view outcome_name(const Outcome& outcome) {
  static constexpr std::string_view kNames[] = {"done", "retry", "dead", "returned"};
  return kNames[outcome.index()];
}

// Finds the known leases of items that are asked for in order.
class KnownLeases {
 public:
  explicit KnownLeases(const std::vector<LeaseOut>& known) : known_(known) {}
  const LeaseOut* find(const LeaseRef& lease) {
    if (at_ == known_.size() || known_[at_].lease.id != lease.id || known_[at_].lease.token != lease.token)
      return nullptr;
    return &known_[at_++];
  }

 private:
  const std::vector<LeaseOut>& known_;
  std::size_t at_ = 0;
};

void publish_settled(SettleCall& call, const std::vector<std::string_view>& outcomes) {
  std::vector<JobEvent> events;
  KnownLeases known(call.known);
  for (std::size_t i = 0; i < call.sent.size(); ++i) {
    const SettleItem& item = call.request.items[call.sent[i]];
    JobEvent event{.type = "job.settled",
                   .id = item.settlement.lease.id,
                   .more = ",\"outcome\":\"" + std::string(outcomes[i]) + "\""};
    if (const LeaseOut* out = known.find(item.settlement.lease)) {
      event.kind = out->facts.kind;
      event.queue = out->facts.queue;
    }
    if (!item.problem) events.push_back(std::move(event));
  }
  call.state->events->publish(events);
}

void on_statuses(const SettlePtr& call, const Result<std::vector<Status>>& statuses,
                   const std::vector<std::string_view>& outcomes) {
  ApiState& state = *call->state;
  std::vector<LeaseOut> still_out;
  std::uint64_t drained = 0;
  KnownLeases known(call->known);
  for (std::size_t i = 0; i < call->sent.size(); ++i) {
    SettleItem& item = call->request.items[call->sent[i]];
    const LeaseRef& lease = item.settlement.lease;
    const Status status = core::status_at(statuses, i);
    const LeaseOut* out = known.find(lease);
    if (status) {
      drained += outcomes[i] == "done" || outcomes[i] == "dead" ? 1 : 0;
      continue;
    }
    item.problem = state.problem_of(status.error());
    if (status.error().code == ErrorCode::kNotFound && state.was_cancelled(lease.id)) {
      item.problem = wire::make_problem("wrong_state", "job " + lease.id.to_string() + " was cancelled");
    }
    const bool is_over = core::ends_lease(status) || status.error().code == ErrorCode::kWrongState;
    if (out != nullptr && !is_over) still_out.push_back(*out);
  }
  if (!still_out.empty()) state.leases->registry().put_back(std::move(still_out));
  if (drained > 0) state.drain_rate.drained(drained, std::chrono::steady_clock::now());
  if (state.events->active()) publish_settled(*call, outcomes);
  answer(*call);
}

void send(const SettlePtr& call) {
  std::vector<Settlement> settlements;
  std::vector<LeaseRef> leases;
  std::vector<std::string_view> outcomes;
  const std::size_t count = call->request.items.size();
  settlements.reserve(count);
  leases.reserve(count);
  outcomes.reserve(count);
  call->sent.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    SettleItem& item = call->request.items[i];
    if (item.problem) continue;
    call->sent.push_back(i);
    leases.push_back(item.settlement.lease);
    outcomes.push_back(outcome_name(item.settlement.outcome));
    Settlement& settlement = settlements.emplace_back();
    settlement.lease = item.settlement.lease;
    settlement.outcome = std::move(item.settlement.outcome);
    settlement.effects = std::move(item.settlement.effects);
  }
  if (settlements.empty()) return answer(*call);
  call->known = call->state->leases->registry().take(leases);
  call->state->broker.settle(std::move(settlements),
                             [call, outcomes = std::move(outcomes)](const Result<std::vector<Status>>& statuses) {
                               on_statuses(call, statuses, outcomes);
                             });
}

// Retry or dead, by the job's own policy.
void decide(ApiState& state, SettleItem& item, const RetryPolicy& retry, const AttemptCounts& counts) {
  auto& again = std::get<RetryAt>(item.settlement.outcome);
  std::optional<std::string> body = std::move(again.body);
  item.settlement.outcome =
      core::decide_after_fault(retry, counts, again.fault, std::move(again.error), state.random());
  if (auto* decided = std::get_if<RetryAt>(&item.settlement.outcome)) decided->body = std::move(body);
}

// Reads the retry policies of jobs leased by an earlier process, one after the other.
void look_up(const SettlePtr& call) {
  if (call->to_look_up.empty()) return send(call);
  const std::size_t index = call->to_look_up.back();
  call->to_look_up.pop_back();
  const JobId id = call->request.items[index].settlement.lease.id;
  call->state->reads->find(call->caller, id, [call, index](const Result<JobInfo>& info) {
    SettleItem& item = call->request.items[index];
    if (!info) {
      item.problem = call->state->problem_of(info.error());
    } else {
      decide(*call->state, item, info->job.retry, info->counts);
    }
    look_up(call);
  });
}

void settle_all(const State& state, const SettlePtr& call) {
  for (std::size_t i = 0; i < call->request.items.size(); ++i) {
    SettleItem& item = call->request.items[i];
    if (!item.problem && state->options.find_callback_problem) {
      for (const Job& effect : item.settlement.effects) {
        if (!item.problem) item.problem = state->options.find_callback_problem(effect);
      }
    }
    if (item.problem || !item.by_policy) continue;
    if (const auto facts = state->leases->registry().facts(item.settlement.lease)) {
      decide(*state, item, facts->retry, facts->counts);
    } else if (state->inspector != nullptr) {
      call->to_look_up.push_back(i);
    } else {
      item.problem = wire::make_problem(
          "unsupported", "this broker does not tell the job's retry policy; use the outcome retry with after");
    }
  }
  look_up(call);
}

void settle(const State& state, const Request& request, Reply reply) {
  const auto call = std::make_shared<SettleCall>(state, request.caller, std::move(reply));
  if (auto problem =
          wire::read_settle_request(request.body, state->now(), call->request, state->options.callback_queue)) {
    return refuse(call->reply, *problem);
  }
  for (SettleItem& item : call->request.items) {
    if (!item.problem) item.problem = find_foreign_lease(request, item.settlement.lease);
    for (const Job& effect : item.settlement.effects) {
      if (!item.problem) item.problem = find_id_problem(effect);
      if (!item.problem && effect.on_conflict == OnConflict::kReplace && !request.caller.may(Scope::kWrite)) {
        item.problem = wire::make_problem("forbidden", "on_conflict replace changes a job that waits, which needs the scope write", "effects");
      }
    }
    if (!item.problem && request.caller.lease && !item.settlement.effects.empty()) {
      item.problem = wire::make_problem("forbidden", "whoever has a lease only may not enqueue jobs", "effects");
    }
  }
  if (!request.caller.is_restricted()) return settle_all(state, call);
  std::vector<LeaseRef> leases;
  for (SettleItem& item : call->request.items) {
    leases.push_back(item.settlement.lease);
    for (const Job& effect : item.settlement.effects) {
      if (!item.problem) item.problem = find_queue_problem(request.caller, effect);
    }
  }
  find_visible(state, request.caller, leases, [state, call](const std::vector<bool>& visible) {
    for (std::size_t i = 0; i < visible.size(); ++i) {
      SettleItem& item = call->request.items[i];
      if (visible[i] || item.problem) continue;
      item.problem = wire::make_problem("not_found", "there is no job " + item.settlement.lease.id.to_string());
    }
    settle_all(state, call);
  });
}

}  // namespace

void add_settle_route(const State& state, Routes& routes) {
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/leases/settle", .scope = Scope::kSettle,
             .summary = "Say what leased jobs came to", .keeps_to_queues = true,
             .operation = {.id = "settleLeases", .request = "SettleRequest", .answers = {{200, "SettleAnswer"}}}},
            &settle);
}

}  // namespace bide::server
