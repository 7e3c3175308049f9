// What an inspector told, read back from the answers of a server.

#include <array>
#include <utility>

#include "wire/answer.h"
#include "wire/info_json.h"
#include "wire/job_fields.h"

namespace bide::wire {

Status answer_status(JsonReader& in) {
  std::optional<Problem> problem;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "problem") {
      problem = read_problem(in);
    } else {
      in.raw();
    }
  }
  return problem ? Status(error_of(*problem)) : Status();
}

AttemptCounts read_counts(JsonReader& in) {
  AttemptCounts counts;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "failed") {
      counts.failed = answer_number<std::uint32_t>(in);
    } else if (*name == "timed_out") {
      counts.timed_out = answer_number<std::uint32_t>(in);
    } else if (*name == "lost") {
      counts.lost = answer_number<std::uint32_t>(in);
    } else if (*name == "crashed") {
      counts.crashed = answer_number<std::uint32_t>(in);
    } else {
      in.raw();
    }
  }
  return counts;
}

std::vector<AttemptError> read_history(JsonReader& in) {
  std::vector<AttemptError> history;
  in.array();
  while (in.element()) {
    AttemptError& error = history.emplace_back();
    in.object();
    while (const auto name = in.field()) {
      if (*name == "attempt") {
        error.attempt = answer_number<std::uint32_t>(in);
      } else if (*name == "at") {
        error.at = answer_time(in);
      } else if (*name == "fault") {
        error.fault = answer_enum(in, Fault::kCrashed);
      } else if (*name == "text") {
        error.text = in.string();
      } else if (*name == "text_base64") {
        error.text = answer_bytes(in);
      } else {
        in.raw();
      }
    }
  }
  return history;
}

namespace {

// Whether the field is one of name, name_text, name_base64; then it is taken.
bool take_result(JsonReader& in, std::string_view field, std::string& out) {
  if (field == "result") {
    out = in.raw();
  } else if (field == "result_text") {
    out = in.string();
  } else if (field == "result_base64") {
    out = answer_bytes(in);
  } else {
    return false;
  }
  return true;
}

JobInfo read_one(JsonReader& in) {
  JobInfo info;
  JobFields fields(info.job);
  in.object();
  while (const auto name = in.field()) {
    if (*name == "state") {
      info.state = answer_enum(in, JobState::kDead);
    } else if (*name == "due") {
      info.due = answer_time(in);
    } else if (*name == "attempts") {
      info.attempts = answer_number<std::uint32_t>(in);
    } else if (*name == "counts") {
      info.counts = read_counts(in);
    } else if (*name == "errors") {
      info.history = read_history(in);
    } else if (*name == "worker") {
      info.worker = in.string();
    } else if (*name == "worker_base64") {
      info.worker = answer_bytes(in);
    } else if (*name == "note") {
      info.note = in.string();
    } else if (*name == "note_base64") {
      info.note = answer_bytes(in);
    } else if (*name == "finished") {
      if (!answer_null(in)) info.finished = answer_time(in);
    } else if (*name == "dead_reason") {
      if (!answer_null(in)) info.dead_reason = answer_enum(in, DeadReason::kDamaged);
    } else if (*name == "result_content_type") {
      info.result_content_type = in.string();
    } else if (!take_result(in, *name, info.result)) {
      bool known = false;
      if (const MaybeProblem problem = fields.take(in, *name, known)) in.fail("wrong_type", problem->detail);
      if (!known) in.raw();
    }
  }
  (void)fields.finish();
  return info;
}

QueueInfo read_queue(JsonReader& in) {
  QueueInfo info;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "name") {
      info.name = in.string();
    } else if (*name == "paused") {
      info.paused = in.boolean();
    } else if (*name == "scheduled") {
      info.scheduled = answer_number<std::uint64_t>(in);
    } else if (*name == "ready") {
      info.ready = answer_number<std::uint64_t>(in);
    } else if (*name == "running") {
      info.running = answer_number<std::uint64_t>(in);
    } else if (*name == "dead") {
      info.dead = answer_number<std::uint64_t>(in);
    } else if (*name == "done") {
      info.done = answer_number<std::uint64_t>(in);
    } else if (*name == "oldest_ready") {
      if (!answer_null(in)) info.oldest_ready = answer_time(in);
    } else if (*name == "workers") {
      info.workers = answer_number<int>(in);
    } else {
      in.raw();
    }
  }
  return info;
}

}  // namespace

Result<JobInfo> read_job_info(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  JobInfo info = read_one(in);
  return checked(in, std::move(info));
}

Result<JobPage> read_job_page(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  JobPage page;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "jobs") {
      in.array();
      while (in.element()) page.jobs.push_back(read_one(in));
    } else if (*name == "next") {
      if (!answer_null(in)) page.next = in.string();
    } else {
      in.raw();
    }
  }
  return checked(in, std::move(page));
}

Result<std::vector<QueueInfo>> read_queues(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  std::vector<QueueInfo> queues;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "queues") {
      in.array();
      while (in.element()) queues.push_back(read_queue(in));
    } else {
      in.raw();
    }
  }
  return checked(in, std::move(queues));
}

Result<Explanation> read_explanation(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  Explanation explanation;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "code") {
      explanation.code = in.string();
    } else if (*name == "text") {
      explanation.text = in.string();
    } else {
      in.raw();
    }
  }
  return checked(in, std::move(explanation));
}

Result<AuditReport> read_audit(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  AuditReport report;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "accepted") {
      report.accepted = answer_number<std::uint64_t>(in);
    } else if (*name == "done") {
      report.done = answer_number<std::uint64_t>(in);
    } else if (*name == "removed") {
      report.removed = answer_number<std::uint64_t>(in);
    } else if (*name == "live") {
      report.live = answer_number<std::uint64_t>(in);
    } else if (*name == "details") {
      in.object();
      while (const auto detail = in.field()) {
        const std::string key(*detail);
        report.details[key] = answer_number<std::uint64_t>(in);
      }
    } else if (*name == "problems") {
      in.array();
      while (in.element()) report.problems.emplace_back(in.string());
    } else {
      in.raw();
    }
  }
  return checked(in, std::move(report));
}

Result<Pressure> read_pressure(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  Pressure pressure;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "level") {
      const std::string_view level = in.string();
      // A level that we do not know is no reason to go on as if all were well.
      pressure.level = level == "ok"     ? Pressure::Level::kOk
                       : level == "high" ? Pressure::Level::kHigh
                                         : Pressure::Level::kBlocked;
    } else if (*name == "reason") {
      pressure.reason = in.string();
    } else if (*name == "retry_after_ms") {
      pressure.retry_after = answer_milliseconds(in);
    } else {
      in.raw();
    }
  }
  return checked(in, std::move(pressure));
}

Result<Capabilities> read_capabilities(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  Capabilities capabilities;
  // What a server does not speak of it does not have.
  for (const CapabilityName& each : capability_names()) capabilities.*each.member = false;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "why_not") {
      capabilities.why_not = in.string();
      continue;
    }
    bool known = false;
    for (const CapabilityName& each : capability_names()) {
      if (each.name != *name) continue;
      known = true;
      capabilities.*each.member = in.boolean();
      break;
    }
    if (!known) in.raw();
  }
  return checked(in, std::move(capabilities));
}

Result<std::uint64_t> read_count(std::string_view body, std::string_view wanted) {
  JsonReader in(body, kDeepestAnswer);
  std::uint64_t count = 0;
  in.object();
  while (const auto name = in.field()) {
    if (*name == wanted) {
      count = answer_number<std::uint64_t>(in);
    } else {
      in.raw();
    }
  }
  return checked(in, std::move(count));
}

Result<std::vector<Status>> read_id_results(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  std::vector<Status> statuses;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "results") {
      in.array();
      while (in.element()) statuses.push_back(answer_status(in));
    } else {
      in.raw();
    }
  }
  return checked(in, std::move(statuses));
}

}  // namespace bide::wire
