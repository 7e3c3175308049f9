#include "wire/fields.h"

#include <array>

#include "wire/job_json.h"

namespace bide::wire {

namespace {

// ---- One value.

void write_plain(JsonWriter& out, const JsonType& type) {
  if (!type.ref.empty()) out.field("$ref", "#/components/schemas/" + std::string(type.ref));
  if (type.names != nullptr) write_value(out.name("enum"), type.names());
  if (type.type.empty()) return;
  if (type.or_type.empty()) {
    out.field("type", type.type);
  } else {
    write_value(out.name("type"), Names{type.type, type.or_type});
  }
  if (!type.format.empty()) out.field("format", type.format);
}

void write_limits(JsonWriter& out, const FieldInfo& field) {
  const JsonType& type = field.type;
  const bool number = type.type == "integer" || type.type == "number";
  const std::string_view least = type.list ? "minItems" : number ? "minimum" : "minLength";
  const std::string_view most = type.list ? "maxItems" : number ? "maximum" : "maxLength";
  if (field.least != kNoLimit) out.field(least, field.least);
  if (field.most != kNoLimit) out.field(most, field.most);
  if (!field.pattern.empty()) out.field("pattern", field.pattern);
  if (!field.usual.empty()) out.name("default").raw(field.usual);
}

void write_property(JsonWriter& out, const FieldInfo& field, bool limits) {
  out.begin_object();
  if (field.type.list || field.type.map) {
    out.field("type", field.type.list ? "array" : "object");
    out.name(field.type.list ? "items" : "additionalProperties").begin_object();
    write_plain(out, field.type);
    out.end_object();
  } else {
    write_plain(out, field.type);
  }
  if (limits) write_limits(out, field);
  if (!field.text.empty()) out.field("description", field.text);
  out.end_object();
}

// ---- What is not written here, or is a choice.

constexpr std::string_view kProblem = R"({
  "type": "object",
  "description": "What was wrong (RFC 9457). code is stable.",
  "required": ["type", "status", "code", "detail"],
  "additionalProperties": false,
  "properties": {
    "type": {"type": "string"},
    "title": {"type": "string"},
    "status": {"type": "integer"},
    "code": {"type": "string"},
    "detail": {"type": "string"},
    "field": {"type": "string", "description": "The field or parameter it is about."},
    "offset": {"type": "integer", "description": "The byte of the request body where its JSON goes wrong."},
    "retry_after_ms": {"type": "integer"},
    "results": {"type": "array", "items": {"$ref": "#/components/schemas/EnqueueResult"},
                "description": "invalid_batch: the items that are not valid."}
  }})";

constexpr std::string_view kHeaderPairs =
    R"({"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"}},
  "description": "Pairs, where a name comes twice."})";

constexpr std::string_view kDurationSchema =
    R"({"type": "string", "description": "A number and a unit, such as 250ms, 10s, 1h30m, 2d.",
  "examples": ["10s", "1h30m"]})";

constexpr std::string_view kRetryText =
    R"({"type": "string", "description": "exponential(1s,2,1h,x25), steps(10s,100s,1h), fixed(30s,x5) or none; all but none may end in jitter=0.2"})";

constexpr JsonType kState = type_of<JobState>();
constexpr JsonType kProblemRef = ref("Problem");

constexpr auto kJobResult = std::to_array<Field<>>({
    shape("id", kUuidType).always(),
    shape("state", kState).always(),
    shape("finished", kTimeType),
    shape("dead_reason", type_of<DeadReason>()),
    shape("error", kStringType),
    shape("error_base64", kStringType),
    shape("result", kAnyType),
    shape("result_text", kStringType),
    shape("result_base64", kStringType),
    shape("result_content_type", kStringType),
});
constexpr auto kEdited = std::to_array<Field<>>(
    {shape("id", kUuidType).always(), shape("due", kTimeType).says("When it is another.")});
constexpr auto kCancelled =
    std::to_array<Field<>>({shape("id", kUuidType).always(), shape("cancelled", kBooleanType).always()});
constexpr auto kQueuePaused =
    std::to_array<Field<>>({shape("name", kStringType).always(), shape("paused", kBooleanType).always()});
constexpr auto kPurged = std::to_array<Field<>>({shape("removed", kIntegerType).always()});

constexpr auto kIdResult = std::to_array<Field<>>({
    shape("id", kUuidType).always(),
    shape("status", kIntegerType).always(),
    shape("problem", kProblemRef),
});
constexpr auto kIdResults = std::to_array<Field<>>({
    shape("results", list_of(ref("IdResult"))).always(),
    shape("succeeded", kIntegerType).always(),
    shape("failed", kIntegerType).always(),
});
constexpr auto kSweepProblem =
    std::to_array<Field<>>({shape("id", kUuidType).always(), shape("problem", kProblemRef).always()});
constexpr auto kSweepResult = std::to_array<Field<>>({
    shape("matched", kIntegerType).always(),
    shape("succeeded", kIntegerType).always(),
    shape("failed", kIntegerType).always(),
    shape("dry_run", kBooleanType).always(),
    shape("problems", list_of(ref("SweepProblem"))).always().says("The first ten."),
});

constexpr auto kDelivery = std::to_array<Field<>>({
    shape("id", kUuidType).always().says("Of the delivery, for its replay."),
    shape("job", kUuidType).always(),
    shape("kind", kStringType).always(),
    shape("queue", kStringType).always(),
    shape("attempt", kIntegerType).always(),
    shape("url", kStringType).always().says("Without its query, which may hold a secret."),
    shape("at", kTimeType).always(),
    shape("took_ms", kIntegerType).always(),
    shape("status", kIntegerType).always().or_null().says("Of the receiver's answer; null: there was none."),
    shape("outcome", {.names =
                          [] {
                            return Names{"done", "accepted", "dead", "failed", "returned"};
                          }})
        .always(),
    shape("error", kStringType).always().says("Empty: it went well."),
});
constexpr auto kCallbackHost = std::to_array<Field<>>({
    shape("host", kStringType).always().says("With its port."),
    shape("breaker", {.names =
                          [] {
                            return Names{"closed", "open", "half-open"};
                          }})
        .always()
        .says("open: nothing is sent; half-open: one is tried."),
    shape("pause_ms", kIntegerType).always().says("Until something is sent again."),
    shape("limit", kIntegerType).always().says("Deliveries at a time, as the host keeps up."),
    shape("under_way", kIntegerType).always(),
    shape("waiting", kIntegerType).always(),
    shape("failures", kIntegerType).always().says("In a row."),
    shape("typical_ms", kIntegerType).always().says("How long it takes to answer."),
    shape("last_error", kStringType).always(),
});
constexpr auto kCallbacks = std::to_array<Field<>>({
    shape("policy", {.names =
                         [] {
                           return Names{"off", "allow-list", "public-only"};
                         }})
        .always(),
    shape("queues", list_of(kStringType)).always().says("Whose jobs the server delivers."),
    shape("waiting", kIntegerType).always(),
    shape("sending", kIntegerType).always(),
    shape("accepted", kIntegerType).always().says("Answered 202, and not settled yet."),
    shape("deliveries", list_of(ref("Delivery"))).always().says("Newest first."),
    shape("next", kStringType).always().or_null().says("before of the next page, or null on the last."),
    shape("hosts", list_of(ref("CallbackHost"))).always(),
});
constexpr auto kCallbackReplayed = std::to_array<Field<>>({
    shape("id", kUuidType).always().says("Of the job: a new one when it was enqueued."),
    shape("how", {.names =
                      [] {
                        return Names{"replayed", "hastened", "enqueued"};
                      }})
        .always()
        .says("It was dead and is put back, it waited and is due now, or it is gone and a copy was enqueued."),
});

Schemas make_schemas() {
  Schemas all;
  const auto add = [&all](std::string_view name, std::string json) { all.push_back({name, std::move(json)}); };
  const auto add_rows = [&](std::string_view name, const auto& rows) { add(name, object_schema({}, rows)); };
  const auto either = [&](std::string_view name, std::string_view one, std::string_view other) {
    add(name, any_of({type_schema(ref(one)), type_schema(ref(other))}));
  };
  add("Problem", std::string(kProblem));
  add("Duration", std::string(kDurationSchema));
  add("HeaderPairs", std::string(kHeaderPairs));
  add("Headers", any_of({type_schema({.type = "string", .map = true}), type_schema(ref("HeaderPairs"))}));
  add("RetryPolicy", any_of({std::string(kRetryText), type_schema(ref("RetryObject"))}));
  add_job_schemas(all);
  add_batch_schemas(all);
  either("EnqueueAnswer", "Enqueued", "EnqueueResults");
  add_event_schemas(all);
  add_backup_schemas(all);
  either("PublishAnswer", "Published", "PublishResults");
  add_info_schemas(all);
  add_dashboard_schemas(all);
  add_change_schemas(all);
  add_edit_schemas(all);
  add_flow_schemas(all);
  add_lease_schemas(all);
  add_settle_schemas(all);
  add_rules_schemas(all);
  add_schedule_schemas(all);
  add_rows("JobResult", kJobResult);
  add_rows("Edited", kEdited);
  add_rows("Cancelled", kCancelled);
  add_rows("QueuePaused", kQueuePaused);
  add_rows("Purged", kPurged);
  add_rows("IdResult", kIdResult);
  add_rows("IdResults", kIdResults);
  add_rows("SweepProblem", kSweepProblem);
  add_rows("SweepResult", kSweepResult);
  either("ChoiceAnswer", "IdResults", "SweepResult");
  add_rows("Delivery", kDelivery);
  add_rows("CallbackHost", kCallbackHost);
  add_rows("Callbacks", kCallbacks);
  add_rows("CallbackReplayed", kCallbackReplayed);
  return all;
}

}  // namespace

std::string object_schema(std::span<const FieldInfo> fields, const SchemaOptions& options) {
  return object_text([&](JsonWriter& out) {
    out.field("type", "object");
    if (!options.text.empty()) out.field("description", options.text);
    Names required = options.required;
    for (const FieldInfo& field : fields) {
      if (field.required) required.push_back(field.name);
    }
    if (!required.empty()) write_value(out.name("required"), required);
    out.field("additionalProperties", false).name("properties").begin_object();
    for (const FieldInfo& field : fields) write_property(out.name(field.name), field, options.limits);
    out.end_object();
  });
}

std::string type_schema(JsonType type, std::int64_t most) {
  std::string text;
  JsonWriter out(text);
  FieldInfo field;
  field.type = type;
  field.most = most;
  write_property(out, field, true);
  return text;
}

std::string list_schema(std::string_view name, std::string_view item, std::int64_t most) {
  return object_schema({}, std::to_array<Field<>>({shape(name, list_of(ref(item))).always().at_most(most)}));
}

std::string any_of(std::initializer_list<std::string> schemas) {
  return object_text([&](JsonWriter& out) {
    out.name("anyOf").begin_array();
    for (const std::string& schema : schemas) out.raw(schema);
    out.end_array();
  });
}

std::span<const Schema> schemas() {
  static const Schemas all = make_schemas();
  return all;
}

}  // namespace bide::wire
