#include "core/schedule_rules.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/duration.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/time_text.h"
#include "core/topics.h"

namespace bide::core {
namespace {

using Problem = std::optional<ScheduleProblem>;

Problem check_who(const Schedule& schedule) {
  if (schedule.name.empty()) {
    return ScheduleProblem{"missing_field", "name", "name is missing; give the schedule one, such as nightly-report"};
  }
  if (!is_name(schedule.name)) {
    return ScheduleProblem{"invalid_schedule_name", "name",
                           "invalid schedule name " + quoted(schedule.name) + std::string(kNameRule)};
  }
  if (!schedule.owner.empty() && !is_name(schedule.owner)) {
    return ScheduleProblem{"invalid_owner", "owner",
                           "invalid owner " + quoted(schedule.owner) + std::string(kNameRule)};
  }
  return {};
}

Problem check_period(const Schedule& schedule, Time now) {
  if (schedule.every < kShortestPeriod || schedule.every > Limits::kDelay) {
    return ScheduleProblem{"invalid_duration", "every",
                           "every " + format_duration(schedule.every) + " is out of range; allowed: 1s to 36500d"};
  }
  if (schedule.anchor && (*schedule.anchor > now + Limits::kDelay || *schedule.anchor < now - Limits::kDelay)) {
    return ScheduleProblem{
        "too_far", "anchor",
        "anchor " + format_time(*schedule.anchor) + " is too far away; allowed: within 100 years of now"};
  }
  return {};
}

Problem check_when(const Schedule& schedule, Time now, TimeZones* zones) {
  const bool has_period = schedule.every != Milliseconds(0);
  if (schedule.cron.empty() && !has_period) {
    return ScheduleProblem{"missing_field", "cron",
                           "neither cron nor every is given; say when it is due, such as 30 7 * * mon-fri or 15m"};
  }
  if (!schedule.cron.empty() && has_period) {
    return ScheduleProblem{"conflicting_fields", "every",
                           "both cron " + quoted(schedule.cron) + " and every " + format_duration(schedule.every) +
                               " are given; give one of them"};
  }
  if (has_period) return check_period(schedule, now);
  if (schedule.anchor) {
    return ScheduleProblem{"conflicting_fields", "anchor",
                           "anchor is given with cron; it belongs to every, a cron expression needs none"};
  }
  if (const auto cron = Cron::parse(schedule.cron); !cron) {
    return ScheduleProblem{"invalid_cron", "cron", cron.error().message};
  }
  if (zones == nullptr) return {};
  if (const auto zone = zones->find(schedule.zone); !zone)
    return ScheduleProblem{"unknown_zone", "zone", zone.error().message};
  return {};
}

Problem check_job(const Schedule& schedule, Time now) {
  const auto one_moment = [](const char* field, const char* why) {
    return ScheduleProblem{"conflicting_fields", std::string("job.") + field,
                           std::string(field) + " is given for the job of a schedule" + why};
  };
  const Job& job = schedule.job;
  if (!job.id.is_nil()) return one_moment("id", "; each occurrence has its own, leave it out");
  if (job.delay != Milliseconds(0)) return one_moment("delay", "; when it is due the schedule says, leave it out");
  if (job.due) return one_moment("due", "; when it is due the schedule says, leave it out");
  if (job.expires) return one_moment("expires", "; one moment cannot hold for all of its occurrences, leave it out");
  if (!job.after.empty())
    return one_moment("after", "; jobs that exist already cannot be before each of its occurrences");
  if (job.past) return one_moment("past", "; it has none");
  if (job.body.size() > kScheduledBodyBytes) {
    return ScheduleProblem{"body_too_large", "job.body",
                           "body has " + std::to_string(job.body.size()) +
                               " bytes; allowed for the job of a schedule: " + std::to_string(kScheduledBodyBytes) +
                               "; store it elsewhere and send its address"};
  }
  if (auto problem = find_problem(scheduled_job(schedule, 1, now), now)) {
    return ScheduleProblem{problem->code, "job." + std::string(problem->field), std::move(problem->message)};
  }
  return {};
}

Problem check_manner(const Schedule& schedule) {
  if (schedule.most_missed < 1 || schedule.most_missed > kMostMissed) {
    return ScheduleProblem{"out_of_range", "most_missed",
                           "most_missed " + std::to_string(schedule.most_missed) + " is out of range; allowed: 1 to " +
                               std::to_string(kMostMissed)};
  }
  if (schedule.jitter < Milliseconds(0) || schedule.jitter > kLongestJitter) {
    return ScheduleProblem{"invalid_duration", "jitter",
                           "jitter " + format_duration(schedule.jitter) + " is out of range; allowed: 0 to 24h"};
  }
  return {};
}

}  // namespace

std::optional<ScheduleProblem> find_problem(const Schedule& schedule, Time now, TimeZones* zones) {
  Problem problem = check_who(schedule);
  if (!problem) problem = check_when(schedule, now, zones);
  if (!problem) problem = check_manner(schedule);
  if (!problem) problem = check_job(schedule, now);
  return problem;
}

Status check_schedule(const Schedule& schedule, Time now, TimeZones* zones) {
  Problem problem = find_problem(schedule, now, zones);
  if (!problem) return {};
  return Error{ErrorCode::kInvalidArgument, std::move(problem->message)};
}

bool same_when(const Schedule& a, const Schedule& b) {
  return a.cron == b.cron && a.every == b.every && a.anchor == b.anchor && (a.cron.empty() || a.zone == b.zone);
}

Result<DueTimes> DueTimes::of(const Schedule& schedule, Time put, TimeZones& zones) {
  DueTimes times;
  if (schedule.cron.empty()) {
    times.every_ = schedule.every;
    times.anchor_ = schedule.anchor.value_or(put);
    return times;
  }
  auto cron = Cron::parse(schedule.cron);
  if (!cron) return cron.error();
  auto zone = zones.find(schedule.zone);
  if (!zone) return zone.error();
  times.cron_ = *cron;
  times.zone_ = std::move(*zone);
  return times;
}

Time DueTimes::next(Time after) const {
  if (cron_) return cron_->next(*zone_, after);
  if (after < anchor_) return anchor_;
  return anchor_ + ((after - anchor_) / every_ + 1) * every_;
}

std::vector<Time> DueTimes::newest(Time after, Time until, std::size_t most) const {
  if (cron_) return cron_->newest(*zone_, after, until, most);
  std::vector<Time> found;
  if (until < anchor_) return found;
  for (Time at = anchor_ + (until - anchor_) / every_ * every_; found.size() < most && at > after && at >= anchor_;
       at -= every_) {
    found.push_back(at);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

std::vector<DueOccurrence> due_occurrences(const Schedule& schedule, const DueTimes& times, Time decided, Time now) {
  constexpr std::size_t kMostOnTime = 100;  // More than there can be.
  const Time missed_until = now - kMissedAfter;
  std::vector<DueOccurrence> found;
  if (decided < missed_until) {
    const std::size_t wanted = schedule.missed == Missed::kAll ? schedule.most_missed : schedule.missed == Missed::kOnce ? 1 : 0;
    const std::vector<Time> missed = times.newest(decided, missed_until, std::max(wanted, ScheduleInfo::kOccurrences));
    for (std::size_t i = 0; i < missed.size(); ++i) found.push_back({missed[i], missed.size() - i > wanted});
  }
  for (const Time due : times.newest(std::max(decided, missed_until), now, kMostOnTime)) found.push_back({due});
  return found;
}

Job scheduled_job(const Schedule& schedule, std::uint32_t version, std::optional<Time> due) {
  Job job = schedule.job;
  job.headers.emplace_back(kScheduleHeader, schedule.name);
  if (!due) return job;
  job.id = occurrence_id(schedule.name, version, *due);
  job.headers.emplace_back(kScheduleDueHeader, format_time(*due));
  job.due = *due + jitter_of(job.id, schedule.jitter);
  return job;
}

JobId occurrence_id(std::string_view name, std::uint32_t version, Time due) {
  // The time in front, as in the ids that bide makes; the version behind it is mixed with the name.
  std::array<std::uint8_t, JobId::kSize> bytes{};
  const auto ms = static_cast<std::uint64_t>(due.time_since_epoch().count());
  for (std::size_t i = 0; i < 6; ++i) bytes[i] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
  for (std::size_t i = 0; i < 4; ++i) bytes[8 + i] = static_cast<std::uint8_t>(version >> (8 * i));
  bytes = event_job_id(JobId(bytes), name).bytes();
  bytes[6] = static_cast<std::uint8_t>(0x80u | (bytes[6] & 0x0fu));
  return JobId(bytes);
}

Milliseconds jitter_of(const JobId& occurrence, Milliseconds most) {
  std::uint64_t number = 0;
  std::memcpy(&number, occurrence.bytes().data() + 8, sizeof number);
  return Milliseconds(static_cast<std::int64_t>((number >> 8) % (static_cast<std::uint64_t>(most.count()) + 1)));
}

}  // namespace bide::core
