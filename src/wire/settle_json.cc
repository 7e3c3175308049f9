#include "wire/settle_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/did_you_mean.h"
#include "core/quote.h"
#include "wire/answer.h"
#include "wire/fields.h"
#include "wire/lease_json.h"

namespace bide::wire {

namespace {

constexpr auto kOutcomes = std::to_array<std::string_view>({"done", "failed", "retry", "dead", "returned"});
enum OutcomeKind : unsigned { kDone, kFailed, kRetry, kDead, kReturned };

// The fields of one item, before it is known which outcome they belong to.
struct SettleDraft {
  Time now;
  std::string_view callback_queue;
  Settlement& settlement;
  std::string outcome = {};
  std::string content = {};  // Of the result or of the new body.
  ContentForm form = ContentForm::kJson;
  std::string content_type = {};
  Milliseconds after{0};
  std::string text = {};  // Error or note.
  Fault fault = Fault::kFailed;
  DeadReason reason = DeadReason::kRejected;
};
using SettleRow = Field<Nothing, SettleDraft>;

template <auto kMember>
MaybeProblem read_draft(JsonReader& in, const SettleRow& row, SettleDraft& draft) {
  return read_value(in, row, draft.*kMember);
}
template <auto kMember, auto kTake>
MaybeProblem read_draft_by(JsonReader& in, const SettleRow& row, SettleDraft& draft) {
  return kTake(in, row.name, draft.*kMember);
}
template <auto kMember, auto kTake>
MaybeProblem read_lease_by(JsonReader& in, const SettleRow& row, SettleDraft& draft) {
  return kTake(in, row.name, draft.settlement.lease.*kMember);
}
template <ContentForm kForm>
MaybeProblem read_settle_content(JsonReader& in, const SettleRow& row, SettleDraft& draft) {
  draft.form = kForm;
  return take_content(in, row.name, kForm, draft.content);
}

MaybeProblem read_effects(JsonReader& in, const SettleRow& row, SettleDraft& draft) {
  std::vector<Job>& effects = draft.settlement.effects;
  in.array();
  while (in.element()) {
    const std::size_t number = effects.size();
    if (number == kMostItems) return too_many_items(row.name, kMostItems);
    MaybeProblem problem = read_job(in, draft.now, effects.emplace_back(), draft.callback_queue);
    if (!problem) problem = wrong_type(in, row.name);
    if (!problem && effects.back().past) problem = make_problem("invalid_past", "past: an effect is new", "past");
    if (problem) {
      problem->detail = "effect " + std::to_string(number) + ": " + problem->detail;
      return problem;
    }
  }
  return wrong_type(in, row.name);
}

constexpr unsigned outcomes(auto... kinds) { return ((1u << kinds) | ...); }
constexpr unsigned kAll = outcomes(kDone, kFailed, kRetry, kDead, kReturned);
constexpr unsigned kFaults = outcomes(kFailed, kRetry, kDead);
constexpr unsigned kAgain = outcomes(kFailed, kRetry);
constexpr unsigned kLater = outcomes(kRetry, kReturned);
enum SettleGroup : int { kResult = 1, kNewBody, kAfter, kError, kNote };

// Marked with the outcomes that have it.
constexpr auto kSettleRows = std::to_array<SettleRow>({
    row("id", kUuidType, read_lease_by<&LeaseRef::id, take_id>).marked(kAll).always(),
    row("token", kTokenType, read_lease_by<&LeaseRef::token, take_token>).marked(kAll).always(),
    row("outcome", {.names = [] { return Names(kOutcomes.begin(), kOutcomes.end()); }},
        read_draft<&SettleDraft::outcome>)
        .marked(kAll)
        .always(),
    row("result", kAnyType, read_settle_content<ContentForm::kJson>).marked(outcomes(kDone)).one_of(kResult),
    row("result_text", kStringType, read_settle_content<ContentForm::kText>).marked(outcomes(kDone)).one_of(kResult),
    row("result_base64", kStringType, read_settle_content<ContentForm::kBase64>)
        .marked(outcomes(kDone))
        .one_of(kResult),
    row("result_content_type", kStringType, read_draft<&SettleDraft::content_type>).marked(outcomes(kDone)),
    row("after", ref("Duration"), read_draft_by<&SettleDraft::after, take_duration>).marked(kLater).one_of(kAfter),
    row("after_ms", kIntegerType, read_draft_by<&SettleDraft::after, take_milliseconds>)
        .marked(kLater)
        .one_of(kAfter)
        .at_least(0),
    row("error", kStringType, read_draft<&SettleDraft::text>).marked(kFaults).one_of(kError),
    row("error_base64", kStringType, read_draft_by<&SettleDraft::text, take_base64>).marked(kFaults).one_of(kError),
    // That a worker was lost or crashed, or that a job expired, is for the broker to say.
    row("fault", {.names = names_until<Fault::kTimedOut>}, read_draft<&SettleDraft::fault>).marked(kFaults),
    row("reason", {.names = names_until<DeadReason::kRejected>}, read_draft<&SettleDraft::reason>)
        .marked(outcomes(kDead)),
    row("body", kAnyType, read_settle_content<ContentForm::kJson>)
        .marked(kAgain)
        .one_of(kNewBody)
        .says("Of the next attempt."),
    row("body_text", kStringType, read_settle_content<ContentForm::kText>).marked(kAgain).one_of(kNewBody),
    row("body_base64", kStringType, read_settle_content<ContentForm::kBase64>).marked(kAgain).one_of(kNewBody),
    row("note", kStringType, read_draft<&SettleDraft::text>).marked(outcomes(kReturned)).one_of(kNote),
    row("note_base64", kStringType, read_draft_by<&SettleDraft::text, take_base64>)
        .marked(outcomes(kReturned))
        .one_of(kNote),
    row("effects", list_of(ref("Job")), read_effects).marked(kAll).says("Enqueued together with the outcome."),
});

using SettleFields = FieldReader<Nothing, SettleDraft>;

bool has_any(const SettleFields& fields, SettleGroup group) {
  return std::any_of(kSettleRows.begin(), kSettleRows.end(),
                     [&](const SettleRow& row) { return row.group == group && fields.has(row); });
}

MaybeProblem assemble_settlement(SettleDraft& draft, const SettleFields& fields, SettleItem& item) {
  const auto found = std::find(kOutcomes.begin(), kOutcomes.end(), draft.outcome);
  if (found == kOutcomes.end()) {
    return make_problem("invalid_outcome",
                        "unknown outcome " + core::quoted(draft.outcome) +
                            "; allowed: done, failed, retry, dead, returned" +
                            core::did_you_mean(draft.outcome, kOutcomes),
                        "outcome");
  }
  const auto kind = static_cast<OutcomeKind>(found - kOutcomes.begin());
  for (const SettleRow& row : kSettleRows) {
    if (fields.has(row) && (row.marks & outcomes(kind)) == 0) {
      return make_problem("conflicting_fields",
                          "the outcome " + draft.outcome + " has no " + std::string(row.name) + "; leave it out",
                          std::string(row.name));
    }
  }
  if (draft.after > Limits::kDelay) {
    return make_problem("too_far", "after is too far away; allowed: 0 to 36500d (100 years)", "after");
  }
  if (kind == kRetry && !has_any(fields, kAfter)) {
    return make_problem("missing_field",
                        "after is missing; say when, such as \"10s\", or use the outcome failed to leave it to the "
                        "job's retry policy",
                        "after");
  }
  Outcome& outcome = item.settlement.outcome;
  switch (kind) {
    case kDone: {
      const bool typed = fields.has("result_content_type");
      Done done{.result = std::move(draft.content)};
      if (!done.result.empty()) done.content_type = typed ? draft.content_type : content_type_of(draft.form);
      outcome = std::move(done);
      break;
    }
    case kDead:
      outcome = Dead{.reason = draft.reason, .fault = draft.fault, .error = std::move(draft.text)};
      break;
    case kReturned:
      outcome = Returned{.after = draft.after, .note = std::move(draft.text)};
      break;
    case kFailed:
    case kRetry: {
      RetryAt again{.after = draft.after, .fault = draft.fault, .error = std::move(draft.text)};
      if (has_any(fields, kNewBody)) again.body = std::move(draft.content);
      outcome = std::move(again);
      item.by_policy = kind == kFailed;
      break;
    }
  }
  return std::nullopt;
}

MaybeProblem read_settlement(JsonReader& in, Time now, std::string_view callback_queue, SettleItem& item) {
  SettleDraft draft{now, callback_queue, item.settlement};
  SettleFields fields(kSettleRows);
  if (MaybeProblem problem = read_fields(in, fields, draft)) return problem;
  if (!in.ok()) return std::nullopt;
  if (MaybeProblem problem = fields.find_missing()) return problem;
  return assemble_settlement(draft, fields, item);
}

void read_settle_item(JsonReader& in, Time now, std::string_view callback_queue, SettleItem& item) {
  in.type();  // Past the white space.
  const JsonReader::Place place = in.place();
  item.problem = read_settlement(in, now, callback_queue, item);
  if (!item.problem && in.ok()) return;
  if (!item.problem) item.problem = problem_of(in.fault());
  in.go_back(place);
  in.raw();
}

bool is_settlement_list(JsonReader in) {
  in.object();
  const auto name = in.field();
  return name && *name == "settlements";
}

MaybeProblem read_settle_items(JsonReader& in, Time now, std::string_view callback_queue,
                               std::vector<SettleItem>& items) {
  in.object();
  in.field();
  in.array();
  while (in.element()) {
    if (items.size() == kMostItems) return too_many_items("settlements", kMostItems);
    read_settle_item(in, now, callback_queue, items.emplace_back());
  }
  if (MaybeProblem problem = wrong_type(in, "settlements")) return problem;
  if (const auto name = in.field()) return unknown_field(*name, std::to_array<std::string_view>({"settlements"}));
  return std::nullopt;
}

}  // namespace

std::optional<Problem> read_settle_request(std::string_view body, Time now, SettleRequest& request,
                                           std::string_view callback_queue) {
  if (is_blank(body)) {
    return empty_body("{\"settlements\":[{\"id\":\"...\",\"token\":\"1\",\"outcome\":\"done\"}]}");
  }
  JsonReader in(body);
  if (is_settlement_list(in)) {
    if (MaybeProblem problem = read_settle_items(in, now, callback_queue, request.items)) return problem;
  } else {
    request.one = true;
    read_settle_item(in, now, callback_queue, request.items.emplace_back());
  }
  in.end();
  return in.ok() ? std::nullopt : MaybeProblem(problem_of(in.fault()));
}

namespace {

void write_outcome(JsonWriter& out, const Outcome& outcome) {
  if (const auto* done = std::get_if<Done>(&outcome)) {
    out.field("outcome", "done");
    if (done->result.empty()) return;
    const std::string_view implied = write_content(out, "result", done->result, done->content_type);
    if (done->content_type != implied) out.field("result_content_type", done->content_type);
  } else if (const auto* again = std::get_if<RetryAt>(&outcome)) {
    out.field("outcome", "retry").field("after_ms", std::max(again->after, Milliseconds(0)));
    out.field("fault", to_string(again->fault));
    out.bytes("error", again->error);
    if (!again->body) return;
    write_content(out, "body", *again->body, "");
  } else if (const auto* dead = std::get_if<Dead>(&outcome)) {
    out.field("outcome", "dead").field("reason", to_string(dead->reason)).field("fault", to_string(dead->fault));
    out.bytes("error", dead->error);
  } else if (const auto* returned = std::get_if<Returned>(&outcome)) {
    out.field("outcome", "returned").field("after_ms", std::max(returned->after, Milliseconds(0)));
    out.bytes("note", returned->note);
  }
}

}  // namespace

void write(JsonWriter& out, const Settlement& settlement) {
  out.begin_object().field("id", settlement.lease.id).token(settlement.lease.token);
  write_outcome(out, settlement.outcome);
  if (!settlement.effects.empty()) {
    out.name("effects").begin_array();
    for (const Job& effect : settlement.effects) write(out, effect);
    out.end_array();
  }
  out.end_object();
}

std::string settle_request_json(const std::vector<Settlement>& settlements) {
  const auto write_all = [&](JsonWriter& out) {
    out.name("settlements").begin_array();
    for (const Settlement& settlement : settlements) write(out, settlement);
    out.end_array();
  };
  return object_text(write_all, settlements.size() * 100 + 32);
}

namespace {

void write_settled(JsonWriter& out, const SettleItem& item) {
  out.begin_object().field("id", item.settlement.lease.id).token(item.settlement.lease.token);
  write_status(out, item.problem);
  out.end_object();
}

}  // namespace

std::string settled_json(const SettleRequest& request) {
  std::string text;
  text.reserve(request.items.size() * 80 + 64);
  JsonWriter out(text);
  if (request.one) {
    write_settled(out, request.items.front());
    return text;
  }
  std::size_t failed = 0;
  out.begin_object().name("settlements").begin_array();
  for (const SettleItem& item : request.items) {
    failed += item.problem ? 1 : 0;
    write_settled(out, item);
  }
  out.end_array().field("settled", request.items.size() - failed).field("failed", failed).end_object();
  return text;
}

Result<std::vector<Status>> read_settled(std::string_view body) { return read_statuses(body, "settlements"); }

void add_settle_schemas(Schemas& schemas) {
  schemas.push_back({"Settlement", object_schema({}, kSettleRows)});
  schemas.push_back({"SettleRequest",
                     any_of({type_schema(ref("Settlement")), list_schema("settlements", "Settlement", kMostItems)})});
  const auto result = std::to_array<Field<>>({
      shape("id", kUuidType).always(),
      shape("token", kStringType).always(),
      shape("status", kIntegerType).always(),
      shape("problem", ref("Problem")),
  });
  schemas.push_back({"SettleResult", object_schema({}, result)});
  const auto results = std::to_array<Field<>>({
      shape("settlements", list_of(ref("SettleResult"))).always(),
      shape("settled", kIntegerType).always(),
      shape("failed", kIntegerType).always(),
  });
  schemas.push_back({"SettleAnswer", any_of({type_schema(ref("SettleResult")), object_schema({}, results)})});
}

}  // namespace bide::wire
