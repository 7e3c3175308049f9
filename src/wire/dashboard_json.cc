#include "wire/dashboard_json.h"

#include <array>

#include "wire/answer.h"
#include "wire/fields.h"

namespace bide::wire {

template <>
inline constexpr std::string_view kSchemaName<StatsColumns> = "StatsColumns";
template <>
inline constexpr std::string_view kSchemaName<StatsSum> = "StatsSum";
template <>
inline constexpr std::string_view kSchemaName<DeadGroup> = "DeadGroup";

template <>
std::span<const Field<StatsSum>> rows_of<StatsSum>();
template <>
std::span<const Field<StatsColumns>> rows_of<StatsColumns>();
template <>
std::span<const Field<DeadGroup>> rows_of<DeadGroup>();

namespace {

// Read by nobody here, so there is no need for a reader of what is in it.
template <auto kMember>
constexpr auto written(std::string_view name) {
  using T = decltype(class_of(kMember));
  Field<T> row;
  row.name = name;
  row.type = type_of<decltype(member_of(kMember))>();
  row.required = true;
  row.write = [](JsonWriter& out, const Field<T>& own, const T& value) { write_value(out.name(own.name), value.*kMember); };
  return row;
}

constexpr JsonType kNumberOrNull{.type = "number", .or_type = "null"};
constexpr std::string_view kLateText = "From due to start, in ms; null where nothing started.";

constexpr auto kStatsSumRows = std::to_array<Field<StatsSum>>({
    written<&StatsSum::name>("name"),
    written<&StatsSum::enqueued>("enqueued"),
    written<&StatsSum::started>("started"),
    written<&StatsSum::done>("done"),
    written<&StatsSum::failed>("failed").says("Attempts; dead among them."),
    written<&StatsSum::dead>("dead"),
    written<&StatsSum::p50>("lateness_p50_ms").of(kNumberOrNull).says(kLateText),
    written<&StatsSum::p95>("lateness_p95_ms").of(kNumberOrNull),
    written<&StatsSum::p99>("lateness_p99_ms").of(kNumberOrNull),
});

constexpr auto kStatsColumnsRows = std::to_array<Field<StatsColumns>>({
    written<&StatsColumns::enqueued>("enqueued"),
    written<&StatsColumns::started>("started"),
    written<&StatsColumns::done>("done"),
    written<&StatsColumns::failed>("failed").says("Attempts; dead among them."),
    written<&StatsColumns::dead>("dead"),
    written<&StatsColumns::p50>("lateness_p50_ms").of(list_of(kNumberOrNull)).says(kLateText),
    written<&StatsColumns::p95>("lateness_p95_ms").of(list_of(kNumberOrNull)),
    written<&StatsColumns::p99>("lateness_p99_ms").of(list_of(kNumberOrNull)),
});

constexpr auto kStatsRows = std::to_array<Field<Stats>>({
    written<&Stats::from>("from").says("Where the first step begins."),
    written<&Stats::step>("step_ms"),
    written<&Stats::steps>("steps").says("A value for each step."),
    written<&Stats::total>("total").says("Of all steps."),
    written<&Stats::queues>("queues"),
    written<&Stats::kinds>("kinds"),
});

constexpr auto kWorkerRows = std::to_array<Field<WorkerInfo>>({
    written<&WorkerInfo::name>("name"),
    written<&WorkerInfo::queues>("queues"),
    written<&WorkerInfo::connected>("connected").says("It takes jobs at the moment."),
    written<&WorkerInfo::running>("running").says("Taken and not settled."),
    written<&WorkerInfo::started>("started"),
    written<&WorkerInfo::done>("done"),
    written<&WorkerInfo::failed>("failed"),
    written<&WorkerInfo::since>("since"),
    written<&WorkerInfo::last_start>("last_start"),
});

constexpr auto kDeadGroupRows = std::to_array<Field<DeadGroup>>({
    written<&DeadGroup::id>("id"),
    written<&DeadGroup::kind>("kind"),
    written<&DeadGroup::error>("error").says("The newest error, with numbers, ids and addresses folded."),
    written<&DeadGroup::count>("count"),
    written<&DeadGroup::first>("first").says("When the first of them died."),
    written<&DeadGroup::last>("last"),
    written<&DeadGroup::example>("example").says("The newest of them."),
    written<&DeadGroup::queues>("queues"),
});

constexpr auto kDeadGroupsRows = std::to_array<Field<DeadGroups>>({
    written<&DeadGroups::groups>("groups").says("The largest first."),
    written<&DeadGroups::looked_at>("looked_at").says("How many dead jobs."),
    written<&DeadGroups::complete>("complete").says("All of them; otherwise the newest."),
});

constexpr auto kDeadGroupPageRows = std::to_array<Field<DeadGroupPage>>({
    written<&DeadGroupPage::ids>("ids").says("Can be fewer than asked for, or none, before the last page."),
    written<&DeadGroupPage::next>("next").or_null().says("The cursor of the next page, or null on the last."),
});

constexpr auto kSessionRows = std::to_array<Field<SessionInfo>>({
    written<&SessionInfo::signed_in>("signed_in"),
    written<&SessionInfo::name>("name").says("Of the token; local, link: who needs none."),
    written<&SessionInfo::scopes>("scopes"),
    written<&SessionInfo::queues>("queues").says("Only these; empty: all."),
    written<&SessionInfo::by_cookie>("by_cookie").says("Signed in by a browser, which can sign out."),
});

constexpr auto kAboutRows = std::to_array<Field<About>>({
    written<&About::version>("version"),
    written<&About::broker>("broker"),
    written<&About::durability>("durability").says("fsync, os or none; empty where the broker decides."),
    written<&About::started>("started"),
});

constexpr auto kSignInRows = std::to_array<Field<>>({
    shape("token", kStringType).says("As bide token create printed it."),
    shape("link", kStringType).says("Or the code of the link that bide serve printed."),
});
constexpr auto kSignedOutRows = std::to_array<Field<>>({shape("signed_in", kBooleanType).always()});

}  // namespace

template <>
std::span<const Field<StatsSum>> rows_of<StatsSum>() {
  return kStatsSumRows;
}
template <>
std::span<const Field<StatsColumns>> rows_of<StatsColumns>() {
  return kStatsColumnsRows;
}
template <>
std::span<const Field<Stats>> rows_of<Stats>() {
  return kStatsRows;
}
template <>
std::span<const Field<WorkerInfo>> rows_of<WorkerInfo>() {
  return kWorkerRows;
}
template <>
std::span<const Field<DeadGroup>> rows_of<DeadGroup>() {
  return kDeadGroupRows;
}
template <>
std::span<const Field<DeadGroups>> rows_of<DeadGroups>() {
  return kDeadGroupsRows;
}
template <>
std::span<const Field<DeadGroupPage>> rows_of<DeadGroupPage>() {
  return kDeadGroupPageRows;
}
template <>
std::span<const Field<SessionInfo>> rows_of<SessionInfo>() {
  return kSessionRows;
}
template <>
std::span<const Field<About>> rows_of<About>() {
  return kAboutRows;
}

std::string stats_json(const Stats& stats) { return to_json(stats); }
std::string workers_json(const std::vector<WorkerInfo>& workers) { return list_json("workers", workers); }
std::string dead_groups_json(const DeadGroups& groups) { return to_json(groups); }
std::string dead_group_page_json(const DeadGroupPage& page) { return to_json(page); }
std::string session_json(const SessionInfo& session) { return to_json(session); }
std::string about_json(const About& about) { return to_json(about); }

void add_dashboard_schemas(Schemas& schemas) {
  schemas.push_back({"StatsSum", object_schema({}, kStatsSumRows)});
  schemas.push_back({"StatsColumns", object_schema({}, kStatsColumnsRows)});
  schemas.push_back({"Stats", object_schema({}, kStatsRows)});
  schemas.push_back({"Worker", object_schema({}, kWorkerRows)});
  schemas.push_back({"Workers", list_schema("workers", "Worker")});
  schemas.push_back({"DeadGroup", object_schema({}, kDeadGroupRows)});
  schemas.push_back({"DeadGroups", object_schema({}, kDeadGroupsRows)});
  schemas.push_back({"DeadGroupPage", object_schema({}, kDeadGroupPageRows)});
  schemas.push_back({"SignIn", object_schema({}, kSignInRows)});
  schemas.push_back({"Session", object_schema({}, kSessionRows)});
  schemas.push_back({"SignedOut", object_schema({}, kSignedOutRows)});
  schemas.push_back({"About", object_schema({}, kAboutRows)});
}

}  // namespace bide::wire
