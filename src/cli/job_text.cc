#include "cli/job_text.h"

#include <array>
#include <cstdint>
#include <set>

#include "cli/failure.h"
#include "cli/table.h"
#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/quote.h"
#include "core/time_text.h"

namespace bide::cli {

namespace {

constexpr std::array kStates = {JobState::kScheduled, JobState::kReady, JobState::kRunning, JobState::kDone,
                                JobState::kDead};

void add_bytes(JsonObject& json, const std::string& name, std::string_view bytes) {
  if (is_utf8(bytes)) {
    json.add(name, bytes);
  } else {
    json.add(name + "_base64", base64(bytes));
  }
}

std::string newest_error(const JobInfo& info) { return info.history.empty() ? "" : info.history.back().text; }

}  // namespace

JobState parse_state(std::string_view text) {
  std::vector<std::string_view> names;
  std::string list;
  for (const JobState state : kStates) {
    if (to_string(state) == text) return state;
    names.push_back(to_string(state));
    list += (list.empty() ? "" : ", ") + std::string(to_string(state));
  }
  fail_usage("unknown state " + core::quoted(text) + "; known are " + list + core::did_you_mean(text, names));
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

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

namespace {

// What fits in an object; what does not, because it is not UTF-8 or comes a second time, as pairs beside it.
void add_headers(JsonObject& json, const Headers& headers) {
  JsonObject object;
  JsonArray pairs;
  std::set<std::string_view> names;
  bool all = true;
  for (const auto& [name, value] : headers) {
    if (is_utf8(name) && is_utf8(value) && names.insert(name).second) {
      object.add(name, value);
    } else {
      pairs.raw(JsonArray().add(base64(name)).add(base64(value)).text());
      all = false;
    }
  }
  json.add("headers", object);
  if (!all) json.add("headers_base64", pairs);
}

JsonArray errors_json(const std::vector<AttemptError>& history) {
  JsonArray errors;
  for (const AttemptError& error : history) {
    JsonObject object;
    object.add("attempt", error.attempt).add("at", core::format_time(error.at)).add("fault", to_string(error.fault));
    add_bytes(object, "text", error.text);
    errors.add(object);
  }
  return errors;
}

// Only what was given for the job, and its past. Of a job that is done nothing of it is kept.
void add_definition(JsonObject& json, const JobInfo& info) {
  constexpr std::array kForgotten = {"counts", "priority", "retry", "time_limit_ms", "headers", "content_type", "errors"};
  if (info.state == JobState::kDone) {
    for (const char* name : kForgotten) json.add_null(name);
    return;
  }
  const Job& job = info.job;
  json.add("counts", JsonObject()
                         .add("failed", info.counts.failed)
                         .add("timed_out", info.counts.timed_out)
                         .add("lost", info.counts.lost)
                         .add("crashed", info.counts.crashed));
  json.add("priority", job.priority).add("retry", job.retry.to_string()).add("time_limit_ms", job.time_limit.count());
  if (job.expires) json.add("expires", core::format_time(*job.expires));
  if (!job.unique_key.empty()) add_bytes(json, "unique_key", job.unique_key);
  add_headers(json, job.headers);
  add_bytes(json, "content_type", content_type_or_default(job.content_type));
  add_bytes(json, "body", job.body);
  json.add("errors", errors_json(info.history));
}

}  // namespace

JsonObject to_json(const JobInfo& info) {
  JsonObject json;
  json.add("id", info.job.id.to_string()).add("kind", info.job.kind).add("queue", info.job.queue);
  json.add("state", to_string(info.state));
  if (info.finished) {
    json.add_null("due");
  } else {
    json.add("due", core::format_time(info.due));
  }
  json.add("attempts", info.attempts);
  add_definition(json, info);
  if (!info.worker.empty()) add_bytes(json, "worker", info.worker);
  if (!info.note.empty()) add_bytes(json, "note", info.note);
  if (info.finished) json.add("finished", core::format_time(*info.finished));
  if (info.dead_reason) json.add("dead_reason", to_string(*info.dead_reason));
  if (!info.result.empty()) {
    add_bytes(json, "result", info.result);
    add_bytes(json, "result_content_type", content_type_or_default(info.result_content_type));
  }
  return json;
}

JsonObject to_json(const QueueInfo& queue) {
  JsonObject json;
  json.add("name", queue.name).add("paused", queue.paused).add("scheduled", queue.scheduled);
  json.add("ready", queue.ready).add("running", queue.running).add("dead", queue.dead).add("done", queue.done);
  json.add("workers", queue.workers);
  if (queue.oldest_ready) {
    json.add("oldest_ready", core::format_time(*queue.oldest_ready));
  } else {
    json.add_null("oldest_ready");
  }
  return json;
}

std::string job_table(const std::vector<JobInfo>& jobs, Time now) {
  Table table({"id", "kind", "queue", "state", "attempts", "when", "error"},
              {Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft, Table::Align::kRight});
  for (const JobInfo& info : jobs) {
    table.row({info.job.id.to_string(), info.job.kind, info.job.queue, std::string(to_string(info.state)),
               std::to_string(info.attempts), relative_time(info.finished.value_or(info.due), now),
               shortened(newest_error(info), 48)});
  }
  return table.text();
}

std::string job_page(const JobInfo& info, Time now) {
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
  fact(info.finished ? "finished" : "due", moment(info.finished.value_or(info.due)));
  if (info.state == JobState::kDone) {
    fact("attempts", std::to_string(info.attempts));
  } else {
    fact("attempts", std::to_string(info.attempts) + " (failed " + std::to_string(info.counts.failed) + ", timed out " +
                         std::to_string(info.counts.timed_out) + ", lost " + std::to_string(info.counts.lost) +
                         ", crashed " + std::to_string(info.counts.crashed) + ")");
    fact("retry", job.retry.to_string());
    fact("time limit", core::format_duration(job.time_limit));
    if (job.priority != 0) fact("priority", std::to_string(job.priority));
    if (job.expires) fact("expires", moment(*job.expires));
    if (!job.unique_key.empty()) fact("unique key", job.unique_key);
    for (const auto& [name, value] : job.headers) fact("header", name + ": " + value);
    fact("body", std::string(content_type_or_default(job.content_type)) + ", " + std::to_string(job.body.size()) + " bytes");
    fact("", core::quoted(job.body));
  }
  if (!info.result.empty()) {
    fact("result", std::string(content_type_or_default(info.result_content_type)) + ", " + std::to_string(info.result.size()) + " bytes");
    fact("", core::quoted(info.result));
  }
  if (!info.note.empty()) fact("note", info.note);
  for (const AttemptError& error : info.history) {
    fact("attempt " + std::to_string(error.attempt),
         core::format_time(error.at) + " " + std::string(to_string(error.fault)) + ": " + error.text);
  }
  return table.text();
}

}  // namespace bide::cli
