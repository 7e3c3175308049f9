#include "cli/jobs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "cli/failure.h"
#include "cli/job_flags.h"
#include "core/broker_answers.h"
#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/text.h"
#include "core/time_text.h"
#include "core/utf8.h"

namespace bide::cli {

namespace {

constexpr std::size_t kPage = 500;
constexpr auto kLeft = Table::Align::kLeft;
constexpr auto kRight = Table::Align::kRight;

std::string newest_error(const JobInfo& info) { return info.history.empty() ? "" : info.history.back().text; }

std::string bytes_text(std::string_view content_type, const std::string& content) {
  return std::string(content_type_or_default(content_type)) + ", " + std::to_string(content.size()) + " bytes";
}

// What fits in an object; what does not, because it is not UTF-8 or comes a second time, as pairs beside it.
void add_headers(JsonObject& json, const Headers& headers) {
  JsonObject object;
  JsonArray pairs;
  std::set<std::string_view> names;
  for (const auto& [name, value] : headers) {
    if (core::is_utf8(name) && core::is_utf8(value) && names.insert(name).second) {
      object.add(name, value);
    } else {
      pairs.add(JsonArray().add(core::to_base64(name)).add(core::to_base64(value)));
    }
  }
  json.add("headers", object);
  if (names.size() < headers.size()) json.add("headers_base64", pairs);
}

// Only what was given for the job, and its past. Of a job that is done it may not be kept.
void add_definition(JsonObject& json, const JobInfo& info) {
  constexpr std::array kForgotten = {"counts", "priority", "retry", "time_limit_ms", "headers", "content_type", "errors"};
  if (info.state == JobState::kDone && !info.whole) {
    for (const char* name : kForgotten) json.add(name, nullptr);
    return;
  }
  const Job& job = info.job;
  json.add("counts", info.counts);
  json.add("priority", job.priority).add("retry", job.retry.to_string()).add("time_limit_ms", job.time_limit.count());
  if (job.expires) json.add("expires", *job.expires);
  if (!job.unique_key.empty()) json.add_bytes("unique_key", job.unique_key);
  if (!job.group.empty()) json.add_bytes("group", job.group);
  if (job.unique_for.count() > 0) json.add("unique_for_ms", job.unique_for.count());
  if (job.on_conflict != OnConflict::kRefuse) json.add("on_conflict", to_string(job.on_conflict));
  add_headers(json, job.headers);
  json.add_bytes("content_type", content_type_or_default(job.content_type));
  json.add_bytes("body", job.body);
  json.add("errors", info.history);
}

}  // namespace

JobFilter filter_of(const Invocation& call) {
  for (const Flag& flag : {kQueueFilter, kKindFilter}) {
    const std::string name = call.value_or(flag.name, "any");
    if (!core::is_name(name)) fail_usage(std::string(flag.name) + ": " + core::quoted(name) + " is not a valid name");
  }
  return {.states = {},
          .queue = call.value_or(kQueueFilter.name, ""),
          .kind = call.value_or(kKindFilter.name, ""),
          .group = call.value_or(kGroupFilter.name, ""),
          .flow = call.has(kFlowFilter.name) ? id_of(kFlowFilter.name, *call.value(kFlowFilter.name)) : JobId(),
          .headers = headers_of(call),
          .error = call.value_or(kErrorFilter.name, ""),
          .since = call.since(kSinceFilter.name),
          .until = call.since(kUntilFilter.name),
          .bodies = false};
}

bool has_filter(const Invocation& call) {
  return std::any_of(kFilterFlags.begin(), kFilterFlags.end(), [&](const Flag& flag) { return call.has(flag.name); });
}

JobPage list_page(const Client& client, const JobFilter& filter, std::string cursor, std::size_t most) {
  JobPage page = ask<JobPage>(
      [&](auto done) { client.inspector().list(filter, std::move(cursor), std::min(kPage, most), std::move(done)); });
  // Not every broker knows of groups, flows and headers; what does not match must not be acted on.
  std::erase_if(page.jobs, [&](const JobInfo& info) { return !core::matches(filter, info.job); });
  return page;
}

JobPage list_all(const Client& client, const JobFilter& filter, std::size_t most, std::string cursor) {
  JobPage all{.jobs = {}, .next = std::move(cursor)};
  do {
    JobPage page = list_page(client, filter, all.next, most - all.jobs.size());
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(all.jobs));
    all.next = std::move(page.next);
  } while (!all.next.empty() && all.jobs.size() < most);
  return all;
}

JobState parse_state(std::string_view text) {
  std::vector<std::string_view> names;
  std::string list;
  for (const JobState state :
       {JobState::kScheduled, JobState::kReady, JobState::kWaiting, JobState::kRunning, JobState::kDone, JobState::kDead}) {
    if (to_string(state) == text) return state;
    names.push_back(to_string(state));
    list += (list.empty() ? "" : ", ") + std::string(to_string(state));
  }
  fail_usage("unknown state " + core::quoted(text) + "; known are " + list + core::did_you_mean(text, names));
}

JsonObject job_json(const JobInfo& info) {
  JsonObject json;
  json.add("id", info.job.id).add("kind", info.job.kind).add("queue", info.job.queue);
  json.add("state", to_string(info.state));
  json.add("due", info.finished ? std::nullopt : std::optional(info.due)).add("attempts", info.attempts);
  if (!info.job.flow.is_nil()) json.add("flow", info.job.flow);
  if (!info.job.after.empty()) {
    json.add("after", info.job.after).add("after_death", to_string(info.job.after_death)).add("waits_for", info.waits_for);
  }
  add_definition(json, info);
  if (info.progress) json.add("progress", *info.progress);
  if (!info.steps.empty()) json.add("steps", info.steps);
  if (!info.worker.empty()) json.add_bytes("worker", info.worker);
  if (!info.note.empty()) json.add_bytes("note", info.note);
  if (info.finished) json.add("finished", *info.finished);
  if (info.dead_reason) json.add("dead_reason", to_string(*info.dead_reason));
  if (!info.result.empty()) {
    json.add_bytes("result", info.result);
    json.add_bytes("result_content_type", content_type_or_default(info.result_content_type));
  }
  return json;
}

std::string job_text(const JobInfo& info, Time now) {
  const Job& job = info.job;
  Table table;
  const auto fact = [&](std::string name, std::string value) { table.row({std::move(name), std::move(value)}); };
  const auto moment = [&](Time time) { return core::format_time(time) + " (" + relative_time(time, now) + ")"; };
  fact("id", job.id.to_string());
  fact("kind", job.kind);
  fact("queue", job.queue);
  std::string state(to_string(info.state));
  if (info.dead_reason) state += ", " + std::string(to_string(*info.dead_reason));
  if (!info.worker.empty()) state += ", by " + info.worker;
  fact("state", state);
  if (info.progress) fact("progress", percent_text(info.progress->part * 100) + (info.progress->note.empty() ? "" : ", " + info.progress->note));
  fact(info.finished ? "finished" : "due", moment(info.finished.value_or(info.due)));
  if (!job.flow.is_nil()) fact("flow", job.flow.to_string());
  if (info.state == JobState::kWaiting) {
    fact("waits for", std::to_string(info.waits_for) + " of " + std::to_string(job.after.size()) + " jobs; when one dies: " +
                          std::string(to_string(job.after_death)));
  }
  for (const JobId& id : job.after) fact("after", id.to_string());
  if (info.state == JobState::kDone && !info.whole) {
    fact("attempts", std::to_string(info.attempts));
  } else {
    fact("attempts", std::to_string(info.attempts) + " (failed " + std::to_string(info.counts.failed) + ", timed out " +
                         std::to_string(info.counts.timed_out) + ", lost " + std::to_string(info.counts.lost) +
                         ", crashed " + std::to_string(info.counts.crashed) + ")");
    fact("retry", job.retry.to_string());
    fact("time limit", core::format_duration(job.time_limit));
    if (job.priority != 0) fact("priority", std::to_string(job.priority));
    if (job.expires) fact("expires", moment(*job.expires));
    if (!job.unique_key.empty()) {
      fact("unique key", job.unique_key +
                             (job.unique_for.count() > 0 ? ", for " + core::format_duration(job.unique_for) + " at least" : ""));
    }
    if (!job.group.empty()) fact("group", job.group);
    for (const auto& [name, value] : job.headers) fact("header", name + ": " + value);
    fact("body", bytes_text(job.content_type, job.body));
    fact("", core::quoted(job.body));
  }
  if (!info.result.empty()) {
    fact("result", bytes_text(info.result_content_type, info.result));
    fact("", core::quoted(info.result));
  }
  if (!info.note.empty()) fact("note", info.note);
  for (const Step& step : info.steps) fact("step", step.name + ": " + core::quoted(step.result));
  for (const AttemptError& error : info.history) {
    fact("attempt " + std::to_string(error.attempt),
         core::format_time(error.at) + " " + std::string(to_string(error.fault)) + ": " + error.text);
  }
  return table.text();
}

std::string percent_text(double percent) {
  const auto tenths = static_cast<std::int64_t>(percent * 10);
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + " %";
}

std::string queue_table(const std::vector<QueueInfo>& queues, Time now) {
  Table table({"queue", "scheduled", "ready", "waiting", "running", "dead", "done", "workers", "oldest ready", ""},
              {kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kRight});
  for (const QueueInfo& queue : queues) {
    table.row({queue.name, std::to_string(queue.scheduled), std::to_string(queue.ready), std::to_string(queue.waiting), std::to_string(queue.running),
               std::to_string(queue.dead), std::to_string(queue.done), std::to_string(queue.workers),
               queue.oldest_ready ? relative_time(*queue.oldest_ready, now) : "-", queue.paused ? "paused" : ""});
  }
  return table.text();
}

std::string audit_text(const AuditReport& report) {
  std::string text = std::to_string(report.accepted) + " accepted = " + std::to_string(report.done) + " done + " +
                     std::to_string(report.removed) + " removed + " + std::to_string(report.live) + " live\n";
  Table table({}, {kLeft, kRight});
  for (const auto& [name, count] : report.details) {
    if (count > 0) table.row({"  " + name, std::to_string(count)});
  }
  text += table.text();
  for (const std::string& problem : report.problems) text += styled(Style::kRed, "problem: ") + for_people(problem) + "\n";
  return text + (report.ok() ? styled(Style::kGreen, "every accepted job is accounted for") + "\n" : "");
}

std::string relative_time(Time time, Time now) {
  if (time == Time()) return "at an unknown time";  // A message that says nothing about it.
  if (time == now) return "now";
  return time > now ? "in " + core::rough_duration(time - now) : core::rough_duration(now - time) + " ago";
}

std::string shortened(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  std::size_t end = width - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

void print_page(const Invocation& call, const JobPage& page, std::string_view nothing) {
  if (call.json()) {
    const auto next = page.next.empty() ? std::nullopt : std::optional(page.next);
    const JsonArray jobs(page.jobs, [](const JobInfo& info) { return job_json(info); });
    return print(JsonObject().add("jobs", jobs).add("next", next));
  }
  if (page.jobs.empty()) return say(nothing);
  Table table({"id", "kind", "queue", "state", "attempts", "when", "error"}, {kLeft, kLeft, kLeft, kLeft, kRight});
  for (const JobInfo& info : page.jobs) {
    table.row({info.job.id.to_string(), info.job.kind, info.job.queue, std::string(to_string(info.state)),
               std::to_string(info.attempts), relative_time(info.finished.value_or(info.due), now()),
               shortened(newest_error(info), 48)});
  }
  print(table.text());
  if (!page.next.empty()) say("there are more: --cursor " + page.next);
}

int print_statuses(const Invocation& call, std::string_view verb, const std::vector<JobId>& ids,
                   const std::vector<Status>& statuses, const Warnings* warnings) {
  std::vector<const Error*> errors;
  JsonArray json;
  for (std::size_t i = 0; i < ids.size() && i < statuses.size(); ++i) {
    const std::string id = ids[i].to_string();
    JsonObject line;
    line.add("id", id).add("ok", statuses[i].has_value());
    if (statuses[i]) {
      if (!call.json()) say(std::string(verb) + " " + id);
    } else {
      const Error& error = statuses[i].error();
      line.add("code", to_string(error.code)).add("error", error.message);
      errors.push_back(&error);
    }
    json.add(line);
  }
  if (call.json()) {
    JsonObject object;
    object.add("jobs", json);
    if (warnings != nullptr) object.add("warnings", warnings->to_json());
    print(object);
  }
  if (errors.empty()) return kOk;
  std::fflush(stdout);
  // All but the first, which ends the command.
  for (std::size_t i = 1; i < errors.size() && !call.json(); ++i) tell("error: " + errors[i]->message);
  const std::string others =
      errors.size() > 1 && call.json() ? " (and " + std::to_string(errors.size() - 1) + " more)" : "";
  fail({errors.front()->code, errors.front()->message + others});
}

int print_plan(const Invocation& call, Verb verb, const std::map<std::string, std::uint64_t>& kinds) {
  std::uint64_t jobs = 0;
  JsonObject by_kind;
  Table table;
  for (const auto& [kind, count] : kinds) {
    jobs += count;
    by_kind.add(kind, count);
    table.row({"  " + kind, std::to_string(count)});
  }
  const std::string would = "would_" + std::string(verb.name);
  print(call, JsonObject().add(would, jobs).add("by_kind", by_kind),
        "would " + std::string(verb.name) + " " + std::to_string(jobs) + " jobs\n" + table.text());
  return kOk;
}

int change_matching(const Invocation& call, const Client& client, std::vector<JobFilter> filters, Verb verb,
                    const std::function<std::vector<Status>(const std::vector<JobId>&)>& apply) {
  const auto most = static_cast<std::size_t>(call.number(kMostFlag.name, kNoLimit, 1, kNoLimit));
  StatusLine status;
  std::vector<JobId> ids;
  std::map<std::string, std::uint64_t> kinds;
  for (JobFilter& filter : filters) {
    filter.bodies = false;
    std::string cursor;
    while (ids.size() < most) {
      status.show("looking: " + std::to_string(ids.size()) + " jobs match");
      JobPage page = list_page(client, filter, cursor, most - ids.size());
      for (const JobInfo& info : page.jobs) {
        ids.push_back(info.job.id);
        ++kinds[info.job.kind];
      }
      cursor = std::move(page.next);
      if (cursor.empty()) break;
    }
  }
  status.clear();
  if (call.has(kDryRunFlag.name)) return print_plan(call, verb, kinds);
  if (!ids.empty()) confirm(call, std::string(verb.name) + " " + std::to_string(ids.size()) + " jobs");

  std::optional<Error> problem;
  std::uint64_t changed = 0;
  for (auto from = ids.begin(); from != ids.end();) {
    status.show_progress(static_cast<std::uint64_t>(from - ids.begin()), ids.size(), verb.done);
    const auto to = from + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(kPage), ids.end() - from);
    for (const Status& each : apply({from, to})) {
      if (each) ++changed;
      else if (!problem) problem = each.error();
    }
    from = to;
  }
  status.clear();
  const std::uint64_t failed = ids.size() - changed;
  print(call, JsonObject().add("matched", ids.size()).add("succeeded", changed).add("failed", failed),
        ids.empty() ? "no jobs match\n"
                    : std::string(verb.done) + " " + std::to_string(changed) + " of " + std::to_string(ids.size()) + " jobs\n");
  if (problem) fail({problem->code, std::to_string(failed) + " jobs were not " + std::string(verb.done) + ": " + problem->message});
  return kOk;
}

Milliseconds timeout_of(const Invocation& call) {
  return call.duration(kTimeoutFlag.name).value_or(std::chrono::minutes(1));
}

int wait_and_print(const Client& client, JobId id, Milliseconds timeout, bool json, const Warnings* warnings) {
  const auto info = client.wait_for(id, timeout);
  if (!info && info.error().code == ErrorCode::kUnavailable) {
    throw Failure{.exit_code = kTryAgain,
                  .message = "job " + id.to_string() + " was neither done nor dead after " +
                             core::format_duration(timeout) + "; `bide job explain " + id.to_string() + "` says why",
                  .id = id.to_string()};
  }
  if (!info) {
    const std::string enqueued = warnings == nullptr ? "" : "job " + id.to_string() + " is enqueued, but ";
    throw Failure{exit_code_of(info.error().code),
                  enqueued + "waiting for " + (warnings == nullptr ? "job " + id.to_string() : "it") +
                      " failed: " + info.error().message,
                  std::string(to_string(info.error().code)), id.to_string()};
  }
  if (json) {
    JsonObject object = job_json(*info);
    if (warnings != nullptr) object.add("warnings", warnings->to_json());
    print(object);
  } else if (info->state == JobState::kDead) {
    const std::string error = info->history.empty() ? "" : ": " + newest_error(*info);
    tell("job " + id.to_string() + " is dead, " +
         std::string(to_string(info->dead_reason.value_or(DeadReason::kRejected))) + error);
  } else {
    print_result(info->result);
  }
  return info->state == JobState::kDead ? kJobFailed : kOk;
}

}  // namespace bide::cli
