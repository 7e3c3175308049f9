#include "wire/settle_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/did_you_mean.h"
#include "core/quote.h"
#include "wire/answer.h"
#include "wire/base64.h"
#include "wire/job_fields.h"
#include "wire/lease_json.h"
#include "wire/take_values.h"
#include "wire/utf8.h"

namespace bide::wire {

namespace {

constexpr auto kBodyNames = std::to_array<std::string_view>({"settlements"});

// As bits, so that an outcome can say which of them it takes.
enum Name : unsigned {
  kId,
  kToken,
  kOutcome,
  kResult,
  kResultText,
  kResultBase64,
  kResultType,
  kAfter,
  kAfterMs,
  kError,
  kErrorBase64,
  kFault,
  kReason,
  kBody,
  kBodyText,
  kBodyBase64,
  kNote,
  kNoteBase64,
  kEffects,
  kNames
};
constexpr auto kItemNames = std::to_array<std::string_view>(
    {"id", "token", "outcome", "result", "result_text", "result_base64", "result_content_type", "after", "after_ms",
     "error", "error_base64", "fault", "reason", "body", "body_text", "body_base64", "note", "note_base64", "effects"});
static_assert(kItemNames.size() == kNames);

constexpr std::uint32_t bits(auto... names) { return ((1u << names) | ...); }
constexpr std::uint32_t kAlways = bits(kId, kToken, kOutcome, kEffects);
constexpr std::uint32_t kResults = bits(kResult, kResultText, kResultBase64);
constexpr std::uint32_t kBodies = bits(kBody, kBodyText, kBodyBase64);
constexpr std::uint32_t kErrors = bits(kError, kErrorBase64, kFault);
constexpr std::uint32_t kWaits = bits(kAfter, kAfterMs);

struct OutcomeKind {
  std::string_view name;
  std::uint32_t takes;
};
constexpr auto kOutcomes = std::to_array<OutcomeKind>({
    {"done", kAlways | kResults | bits(kResultType)},
    {"failed", kAlways | kErrors | kBodies},
    {"retry", kAlways | kErrors | kBodies | kWaits},
    {"dead", kAlways | kErrors | bits(kReason)},
    {"returned", kAlways | kWaits | bits(kNote, kNoteBase64)},
});

// The fields of one item, before it is known which outcome they belong to.
struct Fields {
  Time now = {};
  std::string_view callback_queue = {};
  std::uint32_t seen = 0;
  std::string outcome = {};
  std::string content = {};  // Of the result or of the new body.
  ContentForm form = ContentForm::kJson;
  std::string content_type = {};
  Milliseconds after{0};
  std::string text = {};  // Error or note.
  Fault fault = Fault::kFailed;
  DeadReason reason = DeadReason::kRejected;
};

template <class E>
MaybeProblem take_name(JsonReader& in, std::string_view field, E last, E& out) {
  const std::string given(in.string());
  if (!in.ok()) return wrong_type(in, field);
  std::vector<std::string_view> names;
  std::string list;
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    names.push_back(to_string(static_cast<E>(value)));
    list += (list.empty() ? "" : ", ") + std::string(names.back());
    if (names.back() != given) continue;
    out = static_cast<E>(value);
    return std::nullopt;
  }
  return make_problem("invalid_argument",
                      "unknown " + std::string(field) + " " + core::quoted(given) + "; allowed: " + list +
                          core::did_you_mean(given, names),
                      std::string(field));
}

MaybeProblem take_effects(JsonReader& in, Time now, std::string_view callback_queue, std::vector<Job>& effects) {
  in.array();
  while (in.element()) {
    const std::size_t number = effects.size();
    if (number == kMostItems) {
      return make_problem("too_many_items", "effects: at most " + std::to_string(kMostItems) + " are allowed",
                          "effects");
    }
    MaybeProblem problem = read_job(in, now, effects.emplace_back(), callback_queue);
    if (!problem) problem = wrong_type(in, "effects");
    if (problem) {
      problem->detail = "effect " + std::to_string(number) + ": " + problem->detail;
      return problem;
    }
  }
  return in.ok() ? std::nullopt : wrong_type(in, "effects");
}

MaybeProblem take_item_field(JsonReader& in, unsigned name, Fields& fields, Settlement& settlement) {
  const std::string_view field = kItemNames[name];
  const auto content = [&](ContentForm form) {
    fields.form = form;
    return take_content(in, field, form, fields.content);
  };
  switch (name) {
    case kId:
      return take_id(in, field, settlement.lease.id);
    case kToken:
      return take_token(in, field, settlement.lease.token);
    case kOutcome:
      return take_text(in, field, fields.outcome);
    case kResult:
    case kBody:
      return content(ContentForm::kJson);
    case kResultText:
    case kBodyText:
      return content(ContentForm::kText);
    case kResultBase64:
    case kBodyBase64:
      return content(ContentForm::kBase64);
    case kResultType:
      return take_text(in, field, fields.content_type);
    case kAfter:
      return take_duration(in, field, fields.after);
    case kAfterMs:
      return take_milliseconds(in, field, fields.after);
    case kError:
    case kNote:
      return take_text(in, field, fields.text);
    case kErrorBase64:
    case kNoteBase64:
      return take_base64(in, field, fields.text);
    // That a worker was lost or crashed, or that a job expired, is for the broker to say.
    case kFault:
      return take_name(in, field, Fault::kTimedOut, fields.fault);
    case kReason:
      return take_name(in, field, DeadReason::kRejected, fields.reason);
    default:
      return take_effects(in, fields.now, fields.callback_queue, settlement.effects);
  }
}

MaybeProblem check_together(const Fields& fields, std::uint32_t takes) {
  for (unsigned name = 0; name < kNames; ++name) {
    if ((fields.seen >> name & 1) != 0 && (takes >> name & 1) == 0) {
      return make_problem(
          "conflicting_fields",
          "the outcome " + fields.outcome + " has no " + std::string(kItemNames[name]) + "; leave it out",
          std::string(kItemNames[name]));
    }
  }
  for (const std::uint32_t group : {kResults, kBodies, kWaits, bits(kError, kErrorBase64), bits(kNote, kNoteBase64)}) {
    std::string_view first;
    for (unsigned name = 0; name < kNames; ++name) {
      if ((fields.seen & group & (1u << name)) == 0) continue;
      if (!first.empty()) return conflicting_fields(first, kItemNames[name]);
      first = kItemNames[name];
    }
  }
  if (fields.after > Limits::kDelay) {
    return make_problem("too_far", "after is too far away; allowed: 0 to 36500d (100 years)", "after");
  }
  return std::nullopt;
}

MaybeProblem assemble(Fields& fields, SettleItem& item) {
  const auto kind = std::find_if(kOutcomes.begin(), kOutcomes.end(),
                                 [&](const OutcomeKind& each) { return each.name == fields.outcome; });
  if (kind == kOutcomes.end()) {
    constexpr auto kAll = std::to_array<std::string_view>({"done", "failed", "retry", "dead", "returned"});
    return make_problem("invalid_outcome",
                        "unknown outcome " + core::quoted(fields.outcome) +
                            "; allowed: done, failed, retry, dead, returned" + core::did_you_mean(fields.outcome, kAll),
                        "outcome");
  }
  if (MaybeProblem problem = check_together(fields, kind->takes)) return problem;
  Outcome& outcome = item.settlement.outcome;
  if (kind->name == "done") {
    Done done{.result = std::move(fields.content)};
    if (!done.result.empty()) {
      done.content_type = (fields.seen >> kResultType & 1) != 0 ? std::move(fields.content_type)
                                                                : std::string(content_type_of(fields.form));
    }
    outcome = std::move(done);
  } else if (kind->name == "dead") {
    outcome = Dead{.reason = fields.reason, .fault = fields.fault, .error = std::move(fields.text)};
  } else if (kind->name == "returned") {
    outcome = Returned{.after = fields.after, .note = std::move(fields.text)};
  } else {
    if (kind->name == "retry" && (fields.seen & kWaits) == 0) {
      return make_problem("missing_field",
                          "after is missing; say when, such as \"10s\", or use the outcome failed to leave it to the "
                          "job's retry policy",
                          "after");
    }
    RetryAt again{.after = fields.after, .fault = fields.fault, .error = std::move(fields.text)};
    if ((fields.seen & kBodies) != 0) again.body = std::move(fields.content);
    outcome = std::move(again);
    item.by_policy = kind->name == "failed";
  }
  return std::nullopt;
}

MaybeProblem read_one(JsonReader& in, Time now, std::string_view callback_queue, SettleItem& item) {
  Fields fields{.now = now, .callback_queue = callback_queue};
  in.object();
  while (const auto given = in.field()) {
    const auto found = std::find(kItemNames.begin(), kItemNames.end(), *given);
    if (found == kItemNames.end()) return unknown_field(*given, kItemNames);
    const auto name = static_cast<unsigned>(found - kItemNames.begin());
    if ((fields.seen >> name & 1) != 0) return duplicate_field(*found);
    fields.seen |= 1u << name;
    if (MaybeProblem problem = take_item_field(in, name, fields, item.settlement)) return problem;
  }
  if (!in.ok()) return std::nullopt;
  for (const unsigned name : {kId, kToken, kOutcome}) {
    if ((fields.seen >> name & 1) == 0) {
      return make_problem("missing_field", std::string(kItemNames[name]) + " is missing",
                          std::string(kItemNames[name]));
    }
  }
  return assemble(fields, item);
}

void read_item(JsonReader& in, Time now, std::string_view callback_queue, SettleItem& item) {
  in.type();  // Past the white space.
  const JsonReader::Place place = in.place();
  item.problem = read_one(in, now, callback_queue, item);
  if (!item.problem && in.ok()) return;
  if (!item.problem) item.problem = problem_of(in.fault());
  in.go_back(place);
  in.raw();
}

bool is_list(JsonReader in) {
  in.object();
  const auto name = in.field();
  return name && *name == "settlements";
}

MaybeProblem read_items(JsonReader& in, Time now, std::string_view callback_queue, std::vector<SettleItem>& items) {
  in.object();
  in.field();
  in.array();
  while (in.element()) {
    if (items.size() == kMostItems) {
      return make_problem("too_many_items", "settlements: at most " + std::to_string(kMostItems) + " at a time",
                          "settlements");
    }
    read_item(in, now, callback_queue, items.emplace_back());
  }
  if (MaybeProblem problem = wrong_type(in, "settlements")) return problem;
  if (const auto name = in.field()) return unknown_field(*name, kBodyNames);
  return std::nullopt;
}

}  // namespace

std::optional<Problem> read_settle_request(std::string_view body, Time now, SettleRequest& request,
                                           std::string_view callback_queue) {
  if (is_blank(body)) {
    return empty_body("{\"settlements\":[{\"id\":\"...\",\"token\":\"1\",\"outcome\":\"done\"}]}");
  }
  JsonReader in(body);
  if (is_list(in)) {
    if (MaybeProblem problem = read_items(in, now, callback_queue, request.items)) return problem;
  } else {
    request.one = true;
    read_item(in, now, callback_queue, request.items.emplace_back());
  }
  in.end();
  return problem_in(in, std::nullopt);
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
    if (is_utf8(*again->body)) {
      out.field("body_text", *again->body);
    } else {
      out.field("body_base64", to_base64(*again->body));
    }
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
  std::string text;
  text.reserve(settlements.size() * 100 + 32);
  JsonWriter out(text);
  out.begin_object().name("settlements").begin_array();
  for (const Settlement& settlement : settlements) write(out, settlement);
  out.end_array().end_object();
  return text;
}

namespace {

void write_settled(JsonWriter& out, const SettleItem& item) {
  out.begin_object().field("id", item.settlement.lease.id).token(item.settlement.lease.token);
  out.field("status", item.problem ? item.problem->status : 200);
  if (item.problem) {
    out.name("problem");
    write(out, *item.problem);
  }
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

Result<std::vector<Status>> read_settled(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  std::vector<Status> statuses;
  in.object();
  while (const auto name = in.field()) {
    if (*name != "settlements") {
      in.raw();
      continue;
    }
    in.array();
    while (in.element()) statuses.push_back(answer_status(in));
  }
  return checked(in, std::move(statuses));
}

}  // namespace bide::wire
