#include "wire/info_json.h"

#include <array>
#include <utility>

#include "wire/job_json.h"

namespace bide::wire {

namespace {

template <class Body>
std::string object_text(Body body) {
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  body(out);
  out.end_object();
  return text;
}

std::string_view level_name(Pressure::Level level) {
  switch (level) {
    case Pressure::Level::kOk:
      return "ok";
    case Pressure::Level::kHigh:
      return "high";
    case Pressure::Level::kBlocked:
      break;
  }
  return "blocked";
}

}  // namespace

void write(JsonWriter& out, const AttemptCounts& counts) {
  out.begin_object();
  out.field("failed", counts.failed).field("timed_out", counts.timed_out);
  out.field("lost", counts.lost).field("crashed", counts.crashed);
  out.end_object();
}

void write(JsonWriter& out, const std::vector<AttemptError>& history) {
  out.begin_array();
  for (const AttemptError& error : history) {
    out.begin_object().field("attempt", error.attempt).field("at", error.at).field("fault", to_string(error.fault));
    out.bytes("text", error.text).end_object();
  }
  out.end_array();
}

void write(JsonWriter& out, const JobInfo& info) {
  out.begin_object();
  if (info.state == JobState::kDone) {
    // Nothing is kept of what was given for the job.
    out.field("id", info.job.id).field("kind", info.job.kind).field("queue", info.job.queue);
  } else {
    write_fields(out, info.job, Detail::kShown);
  }
  out.field("state", to_string(info.state)).field("due", info.due).field("attempts", info.attempts);
  out.name("counts");
  write(out, info.counts);
  out.name("errors");
  write(out, info.history);
  if (!info.worker.empty()) out.bytes("worker", info.worker);
  if (!info.note.empty()) out.bytes("note", info.note);
  if (info.finished) out.field("finished", *info.finished);
  if (info.dead_reason) out.field("dead_reason", to_string(*info.dead_reason));
  if (!info.result.empty()) {
    write_content(out, "result", info.result, info.result_content_type);
    out.field("result_content_type", info.result_content_type);
  }
  out.end_object();
}

void write(JsonWriter& out, const QueueInfo& info) {
  out.begin_object().field("name", info.name).field("paused", info.paused).field("scheduled", info.scheduled);
  out.field("ready", info.ready).field("running", info.running).field("dead", info.dead).field("done", info.done);
  out.field("oldest_ready", info.oldest_ready).field("workers", info.workers).end_object();
}

std::string job_info_json(const JobInfo& info) {
  std::string text;
  JsonWriter out(text);
  write(out, info);
  return text;
}

std::string job_page_json(const JobPage& page) {
  return object_text([&](JsonWriter& out) {
    out.name("jobs").begin_array();
    for (const JobInfo& info : page.jobs) write(out, info);
    out.end_array().name("next");
    if (page.next.empty()) {
      out.null();
    } else {
      out.string(page.next);
    }
  });
}

std::string queues_json(const std::vector<QueueInfo>& queues) {
  return object_text([&](JsonWriter& out) {
    out.name("queues").begin_array();
    for (const QueueInfo& info : queues) write(out, info);
    out.end_array();
  });
}

std::string explanation_json(const Explanation& explanation) {
  return object_text([&](JsonWriter& out) { out.field("code", explanation.code).field("text", explanation.text); });
}

std::string audit_json(const AuditReport& report) {
  return object_text([&](JsonWriter& out) {
    out.field("ok", report.ok()).field("accepted", report.accepted).field("done", report.done);
    out.field("removed", report.removed).field("live", report.live);
    out.name("details").begin_object();
    for (const auto& [name, count] : report.details) out.any_name(name).number(count);
    out.end_object().name("problems").begin_array();
    for (const std::string& problem : report.problems) out.string(problem);
    out.end_array();
  });
}

std::string pressure_json(const Pressure& pressure) {
  return object_text([&](JsonWriter& out) {
    out.field("level", level_name(pressure.level)).field("reason", pressure.reason);
    out.field("retry_after_ms", pressure.retry_after);
  });
}

std::string capabilities_json(const Capabilities& capabilities) {
  return object_text([&](JsonWriter& out) {
    for (const CapabilityName& each : capability_names()) out.field(each.name, capabilities.*each.member);
    out.field("why_not", capabilities.why_not);
  });
}

std::span<const CapabilityName> capability_names() {
  static constexpr auto kNames = std::to_array<CapabilityName>({
      {"inspect", &Capabilities::inspect},
      {"cancel", &Capabilities::cancel},
      {"reschedule", &Capabilities::reschedule},
      {"hasten", &Capabilities::hasten},
      {"unique_keys", &Capabilities::unique_keys},
      {"idempotent_ids", &Capabilities::idempotent_ids},
      {"priorities", &Capabilities::priorities},
      {"pause", &Capabilities::pause},
      {"results", &Capabilities::results},
      {"expiry", &Capabilities::expiry},
      {"dead_set", &Capabilities::dead_set},
      {"atomic_effects", &Capabilities::atomic_effects},
      {"completions", &Capabilities::completions},
      {"final_settle", &Capabilities::final_settle},
      {"due_order", &Capabilities::due_order},
      {"lasting_leases", &Capabilities::lasting_leases},
      {"audit", &Capabilities::audit},
      {"virtual_time", &Capabilities::virtual_time},
  });
  return kNames;
}

std::string count_json(std::string_view name, std::uint64_t count) {
  return object_text([&](JsonWriter& out) { out.field(name, count); });
}

std::string id_results_json(const std::vector<JobId>& ids, const std::vector<Status>& statuses) {
  return object_text([&](JsonWriter& out) {
    std::size_t failed = 0;
    out.name("results").begin_array();
    for (std::size_t i = 0; i < ids.size() && i < statuses.size(); ++i) {
      out.begin_object().field("id", ids[i]);
      if (statuses[i]) {
        out.field("status", 200);
      } else {
        ++failed;
        const Problem problem = problem_of(statuses[i].error());
        out.field("status", problem.status).name("problem");
        write(out, problem);
      }
      out.end_object();
    }
    out.end_array().field("succeeded", ids.size() - failed).field("failed", failed);
  });
}

}  // namespace bide::wire
