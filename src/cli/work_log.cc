#include "cli/work_log.h"

#include <chrono>
#include <cstdio>
#include <variant>

#include "cli/invocation.h"
#include "cli/say.h"
#include "core/duration.h"
#include "core/time_text.h"

namespace bide::cli {

namespace {

struct Told {
  std::string event;
  std::string line;
  std::string error = {};
};

struct Describe {
  Told operator()(const Done&) const { return {"done", "done"}; }
  Told operator()(const RetryAt& retry) const {
    return {"retry", "failed, again in " + core::rough_duration(retry.after) + ": " + retry.error, retry.error};
  }
  Told operator()(const Dead& dead) const {
    return {"dead", "dead, " + std::string(to_string(dead.reason)) + ": " + dead.error, dead.error};
  }
  Told operator()(const Returned& returned) const {
    return {"returned", "given back: " + returned.note, returned.note};
  }
};

JsonObject event(std::string_view name) { return JsonObject().add("at", core::format_time(now())).add("event", name); }

JsonObject& add_job(JsonObject& json, const Job& job, std::uint32_t attempt) {
  return json.add("id", job.id.to_string()).add("kind", job.kind).add("queue", job.queue).add("attempt", attempt);
}

std::string name_of(const Job& job, std::uint32_t attempt) {
  return job.kind + " " + job.id.to_string() + " attempt " + std::to_string(attempt);
}

}  // namespace

void WorkLog::started(const Context& context) {
  if (options_.quiet) return;
  JsonObject json = event("started");
  add_job(json, context.job(), context.attempt());
  write(name_of(context.job(), context.attempt()) + ": starts", json);
}

void WorkLog::finished(const Finished& finished) {
  if (options_.quiet) return;
  const Told told = std::visit(Describe{}, finished.outcome);
  const auto took = std::chrono::duration_cast<Milliseconds>(finished.took);
  JsonObject json = event(told.event);
  add_job(json, finished.job, finished.attempt).add("took_ms", took.count());
  if (!told.error.empty()) json.add("error", told.error);
  write(name_of(finished.job, finished.attempt) + " after " + core::rough_duration(took) + ": " + told.line, json);
}

void WorkLog::problem(std::string_view text) {
  write("warning: " + std::string(text), event("problem").add("text", text));
}

void WorkLog::left(std::string_view queue, const std::string& why, std::uint64_t jobs, bool at_least) {
  write("left in queue " + std::string(queue) + ": " + (at_least ? "at least " : "") + std::to_string(jobs) +
            (jobs == 1 ? " job " : " jobs ") + why,
        event("left").add("queue", queue).add("why", why).add("jobs", jobs).add("at_least", at_least));
}

void WorkLog::write(const std::string& line, const JsonObject& json) {
  std::lock_guard lock(mutex_);
  if (!options_.json) return tell(line);
  std::puts(json.text().c_str());
  std::fflush(stdout);
}

}  // namespace bide::cli
