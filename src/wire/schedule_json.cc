#include "wire/schedule_json.h"

#include <array>
#include <utility>

#include "core/duration.h"
#include "core/schedule_rules.h"
#include "core/time_text.h"
#include "wire/answer.h"
#include "wire/filter_query.h"
#include "wire/job_json.h"

namespace bide::wire {

template <>
std::span<const Field<Occurrence>> rows_of<Occurrence>();
template <>
inline constexpr std::string_view kSchemaName<Occurrence> = "Occurrence";

namespace {

// What is read into: of a request the job is read as one that is enqueued, of an answer as it comes.
struct ScheduleDraft {
  ScheduleInfo info = {};
  bool request = false;
  Time now = {};
  std::string_view callback_queue = {};
};

using ScheduleRow = Field<ScheduleInfo, ScheduleDraft>;

template <auto... kPath>
constexpr ScheduleRow schedule_member(std::string_view name) {
  const auto plain = field<kPath...>(name);
  ScheduleRow made;
  static_cast<FieldInfo&>(made) = plain;
  made.null_is_none = plain.null_is_none;
  made.read = [](JsonReader& in, const ScheduleRow& own, ScheduleDraft& draft) {
    return read_value(in, own, (draft.info.*....*kPath));
  };
  made.write = [](JsonWriter& out, const ScheduleRow& own, const ScheduleInfo& info) {
    const auto& value = (info.*....*kPath);
    if (!own.omit_empty || !is_empty(value)) write_value(out.name(own.name), value);
  };
  return made;
}

template <auto kMember>
constexpr ScheduleRow schedule_part(std::string_view name) {
  return schedule_member<&ScheduleInfo::schedule, kMember>(name);
}

template <auto kMember>
constexpr ScheduleRow schedule_duration(std::string_view name) {
  return row<ScheduleInfo, ScheduleDraft>(
      name, ref("Duration"), [](JsonReader& in, const ScheduleRow& own, ScheduleDraft& draft) {
        return take_duration(in, own.name, draft.info.schedule.*kMember);
      });
}
template <auto kMember>
constexpr ScheduleRow schedule_milliseconds(std::string_view name) {
  ScheduleRow made = schedule_part<kMember>(name).at_least(0);
  made.read = [](JsonReader& in, const ScheduleRow& own, ScheduleDraft& draft) {
    return take_milliseconds(in, own.name, draft.info.schedule.*kMember);
  };
  return made;
}

MaybeProblem read_schedule_job(JsonReader& in, const ScheduleRow& row, ScheduleDraft& draft) {
  if (!draft.request) {
    read_answer_with_job(in, std::span<const Field<Schedule>>(), draft.info.schedule);
    return wrong_type(in, row.name);
  }
  MaybeProblem problem = read_job(in, draft.now, draft.info.schedule.job, draft.callback_queue);
  if (problem && !problem->field.empty()) problem->field = "job." + problem->field;
  return problem ? problem : wrong_type(in, row.name);
}

void write_schedule_job(JsonWriter& out, const ScheduleRow& row, const ScheduleInfo& info) {
  write(out.name(row.name), info.schedule.job);
}

enum ScheduleGroup : int { kScheduleWhen = 1, kScheduleJitter };

constexpr auto kScheduleRows = std::to_array<ScheduleRow>({
    schedule_part<&Schedule::name>("name").always(),
    schedule_part<&Schedule::owner>("owner").unless_empty().says("Who put it: another one may not."),
    schedule_part<&Schedule::cron>("cron")
        .one_of(kScheduleWhen)
        .unless_empty()
        .says("Minute, hour, day of the month, month, day of the week, and seconds in front if wanted; or @daily."),
    schedule_part<&Schedule::zone>("zone").otherwise("\"UTC\"").says("Of the tz database, for cron."),
    schedule_duration<&Schedule::every>("every").one_of(kScheduleWhen),
    schedule_milliseconds<&Schedule::every>("every_ms").one_of(kScheduleWhen).unless_empty(),
    schedule_part<&Schedule::anchor>("anchor").unless_empty().says("For every: it is due at whole multiples from here."),
    row("job", ref("Job"), read_schedule_job, write_schedule_job).always().says("Without id, delay and due."),
    schedule_part<&Schedule::missed>("missed").otherwise("\"once\"").says("What was due while nobody was there."),
    schedule_part<&Schedule::most_missed>("most_missed").otherwise("100").says("With all: the newest of these."),
    schedule_part<&Schedule::overlap>("overlap").otherwise("\"allow\"").says("When the job of the last occurrence lives on."),
    schedule_duration<&Schedule::jitter>("jitter").one_of(kScheduleJitter),
    schedule_milliseconds<&Schedule::jitter>("jitter_ms")
        .one_of(kScheduleJitter)
        .otherwise("0")
        .says("Each occurrence is late by a part of this."),
    schedule_member<&ScheduleInfo::version>("version").always().says("Grows when it is due at other times than before."),
    schedule_member<&ScheduleInfo::paused>("paused").always(),
    schedule_member<&ScheduleInfo::next>("next").always().or_null().says("Null: it is not due again."),
    schedule_member<&ScheduleInfo::last>("last").always().says("Newest first."),
});
constexpr auto kScheduleRequestRows = std::span<const ScheduleRow>(kScheduleRows).subspan(1, kScheduleRows.size() - 5);

constexpr auto kOccurrenceRows = std::to_array<Field<Occurrence>>({
    always<&Occurrence::due>("due"),
    maybe<&Occurrence::job>("job").says("That it made."),
    maybe<&Occurrence::note>("note").says("Why none was made."),
    maybe<&Occurrence::state>("state").says("Of the job, while it is known."),
});

constexpr auto kPutRows = std::to_array<Field<PutSchedule>>({
    always<&PutSchedule::created>("created"),
    always<&PutSchedule::changed>("changed").says("Neither: it was the same already."),
    always<&PutSchedule::next>("next").or_null(),
});

constexpr auto kTimesRows = std::to_array<Field<ScheduleTimes>>({
    always<&ScheduleTimes::text>("text").says("One sentence, for people."),
    always<&ScheduleTimes::times>("times"),
});

MaybeProblem schedule_problem(const Schedule& schedule, Time now) {
  auto problem = core::find_problem(schedule, now);
  if (!problem) return std::nullopt;
  return make_problem(problem->code, std::move(problem->message), std::move(problem->field));
}

std::vector<FieldInfo> schedule_fields() {
  std::vector<FieldInfo> fields;
  for (const ScheduleRow& row : kScheduleRows) {
    if (row.write != nullptr) fields.push_back(row);
  }
  return fields;
}

}  // namespace

template <>
std::span<const Field<Occurrence>> rows_of<Occurrence>() {
  return kOccurrenceRows;
}
template <>
std::span<const Field<PutSchedule>> rows_of<PutSchedule>() {
  return kPutRows;
}
template <>
std::span<const Field<ScheduleTimes>> rows_of<ScheduleTimes>() {
  return kTimesRows;
}

void write_value(JsonWriter& out, const ScheduleInfo& info) {
  out.begin_object();
  write_rows(out, std::span<const ScheduleRow>(kScheduleRows), info);
  out.end_object();
}

void read_answer(JsonReader& in, ScheduleInfo& info) {
  ScheduleDraft draft;
  FieldReader<ScheduleInfo, ScheduleDraft> fields(kScheduleRows);
  in.object();
  while (const auto name = in.field()) read_answer_field(in, fields, *name, draft);
  info = std::move(draft.info);
}

std::optional<Problem> read_schedule(std::string_view body, Time now, std::string_view callback_queue,
                                     Schedule& schedule) {
  ScheduleDraft draft{.request = true, .now = now, .callback_queue = callback_queue};
  FieldReader<ScheduleInfo, ScheduleDraft> fields(kScheduleRequestRows);
  if (MaybeProblem problem = read_request(body, R"(a schedule, such as {"every":"1h","job":{"kind":"report"}})", fields, draft)) {
    return problem;
  }
  draft.info.schedule.name = std::move(schedule.name);
  schedule = std::move(draft.info.schedule);
  return schedule_problem(schedule, now);
}

std::optional<Problem> read_times_query(const std::map<std::string, std::string>& query, Time now, TimesRequest& request) {
  const auto invalid = [](std::string_view name, const std::string& text) {
    return make_problem("invalid_parameter", std::string(name) + ": " + text, std::string(name));
  };
  Schedule& schedule = request.schedule;
  for (const auto& [name, value] : query) {
    if (name == "cron") {
      schedule.cron = value;
    } else if (name == "zone") {
      schedule.zone = value;
    } else if (name == "every") {
      const auto every = core::parse_duration(value);
      if (!every) return invalid(name, every.error().message);
      schedule.every = *every;
    } else if (name == "anchor") {
      const auto anchor = core::parse_time(value);
      if (!anchor) return invalid(name, anchor.error().message);
      schedule.anchor = *anchor;
    } else if (name == "limit") {
      if (MaybeProblem problem = take_limit(value, request.limit)) return problem;
    }
  }
  // Only when it is due is of interest.
  Schedule named = schedule;
  named.name = named.job.kind = "any";
  return schedule_problem(named, now);
}

std::string schedule_request_json(const Schedule& schedule) {
  const ScheduleInfo info{.schedule = schedule};
  return object_text([&](JsonWriter& out) { write_rows(out, kScheduleRequestRows, info); });
}

std::string put_schedule_json(std::string_view name, const PutSchedule& put) {
  return object_text([&](JsonWriter& out) {
    out.field("name", name);
    write_rows(out, rows_of<PutSchedule>(), put);
  });
}

Result<PutSchedule> read_put_schedule(std::string_view body) { return read_document<PutSchedule>(body); }

std::string schedule_json(const ScheduleInfo& info) { return to_json(info); }
std::string schedules_json(const std::vector<ScheduleInfo>& infos) { return list_json("schedules", infos); }
Result<std::vector<ScheduleInfo>> read_schedules(std::string_view body) {
  return read_list<ScheduleInfo>(body, "schedules");
}

std::string schedule_run_json(std::string_view name, const JobId& job) {
  return object_text([&](JsonWriter& out) { out.field("name", name).field("id", job); });
}
Result<JobId> read_schedule_run(std::string_view body) {
  JobId job;
  return read_named(body, "id", job, [&](JsonReader& in) {
    if (take_id(in, "id", job)) in.fail("wrong_type", "id is no UUID");
  });
}

std::string schedule_times_json(const ScheduleTimes& times) { return to_json(times); }

void add_schedule_schemas(Schemas& schemas) {
  const auto name = std::to_array<Field<>>({shape("name", kStringType).always()});
  schemas.push_back({"Schedule", object_schema(schedule_fields(), {.limits = false})});
  schemas.push_back({"ScheduleRequest", object_schema({}, kScheduleRequestRows)});
  schemas.push_back({"Schedules", list_schema("schedules", "Schedule")});
  schemas.push_back({"Occurrence", object_schema({}, kOccurrenceRows)});
  schemas.push_back({"SchedulePut", object_schema({}, name, kPutRows)});
  const auto paused = std::to_array<Field<>>({shape("paused", kBooleanType).always()});
  schemas.push_back({"SchedulePaused", object_schema({}, name, paused)});
  schemas.push_back({"ScheduleRemoved", object_schema({}, name, std::to_array<Field<>>({shape("removed", kBooleanType).always()}))});
  schemas.push_back({"ScheduleRun", object_schema({}, name, std::to_array<Field<>>({shape("id", kUuidType).always().says("Of the job.")}))});
  schemas.push_back({"ScheduleTimes", object_schema({}, kTimesRows)});
}

}  // namespace bide::wire
