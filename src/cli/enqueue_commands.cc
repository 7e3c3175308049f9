// bide enqueue.

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/client.h"
#include "bide/wait.h"
#include "cli/body_source.h"
#include "cli/command_groups.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/job_text.h"
#include "cli/json.h"
#include "cli/open_store.h"
#include "cli/say.h"
#include "cli/waiting.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "wire/job_json.h"

namespace bide::cli {

namespace {

Headers headers_of(const Invocation& call) {
  Headers headers;
  for (const std::string& text : call.values("--header")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      fail_usage("--header: " + core::quoted(text) + " is not NAME=VALUE");
    }
    headers.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return headers;
}

JobId id_of(const std::string& text) {
  const auto id = JobId::parse(text);
  if (!id) fail_usage("--id: " + id.error().message);
  if (id->is_nil()) fail_usage("--id: all zeros means no id; give another UUID, or leave the flag out");
  return *id;
}

EnqueueOptions options_of(const Invocation& call) {
  EnqueueOptions options;
  options.queue = call.value_or("--queue", options.queue);
  if (call.has("--delay") && call.has("--due")) fail_usage("--delay and --due: give one of them, not both");
  options.delay = call.duration("--delay").value_or(options.delay);
  options.due = call.time("--due");
  options.expires = call.time("--expires");
  options.time_limit = call.duration("--ttr").value_or(options.time_limit);
  options.priority = static_cast<int>(call.number("--priority", 0, -100, 100));
  if (const auto retry = call.value("--retry")) {
    auto policy = RetryPolicy::parse(*retry);
    if (!policy) fail_usage("--retry: " + policy.error().message);
    options.retry = std::move(*policy);
  }
  options.unique_key = call.value_or("--unique", "");
  if (call.has("--unique") && options.unique_key.empty()) {
    fail_usage("--unique: the key is empty; give one, or leave the flag out");
  }
  if (const auto id = call.value("--id")) options.id = id_of(*id);
  options.content_type = call.value_or("--content-type", "");
  options.headers = headers_of(call);
  return options;
}

struct FieldFlag {
  std::string_view field;
  std::string_view flag;
};

// Where on the command line a field of the job was said.
constexpr std::array kFieldFlags = {
    FieldFlag{"kind", "KIND"},           FieldFlag{"body", "BODY"},        FieldFlag{"time_limit", "--ttr"},
    FieldFlag{"unique_key", "--unique"}, FieldFlag{"headers", "--header"}, FieldFlag{"content_type", "--content-type"},
};

void check(const Job& job, Time moment) {
  const auto problem = core::find_problem(job, moment);
  if (!problem) return;
  std::string flag = "--" + std::string(problem->field);
  for (const FieldFlag& each : kFieldFlags) {
    if (each.field == problem->field) flag = each.flag;
  }
  throw Failure{kUsage, flag + ": " + problem->message, std::string(problem->code)};
}

// Nothing is wrong with these, but hardly anybody means them.
void warn(const Job& job, Time moment, Warnings& warnings) {
  if (job.due && *job.due < moment) warnings.add("--due is in the past: the job runs now");
  const Time starts = job.due ? std::max(*job.due, moment) : moment + job.delay;
  if (job.expires && *job.expires <= moment) {
    warnings.add("--expires is in the past: the job will be dead, as expired, without having run");
  } else if (job.expires && *job.expires <= starts) {
    warnings.add("--expires is before the job is due: it will be dead, as expired, without having run");
  }
}

// Headers that only a server acts on. Through a server it checks them itself.
void check_callback(const Invocation& call, const Job& job, Warnings& warnings) {
  if (url_of(call).starts_with("http")) return;
  if (!wire::header_of(job, wire::kCallbackHeader).empty()) {
    if (!call.has("--queue")) {
      fail_usage("--header: bide-callback is delivered by a bide server only; give its address as --url, or as --queue "
                 "one that a server of this store delivers (callbacks, unless its configuration says otherwise)");
    }
    warnings.add("bide-callback: delivered only by a bide server of this store, if it delivers queue " +
                 core::quoted(job.queue));
  }
}

void warn_of_completions(const Invocation& call, const Client& client, const Job& job, Warnings& warnings) {
  if (url_of(call).starts_with("http")) return;
  const bool made = client.broker().capabilities().completions;
  if (!wire::header_of(job, wire::kOnDoneHeader).empty()) {
    warnings.add(std::string(wire::kOnDoneHeader) +
                 (made ? ": delivered only by a bide server of this store"
                       : ": obeyed only when the job's worker gets it from a bide server"));
  }
  if (!made && !wire::header_of(job, wire::kReplyQueueHeader).empty()) {
    warnings.add(std::string(wire::kReplyQueueHeader) + ": obeyed only when the job's worker gets it from a bide server");
  }
}

// A job with this id is there. That is what --id is for; but another job under the same id is a mistake.
void warn_existed(const Client& client, const Job& given, Warnings& warnings) {
  const std::string begin = "a job with this id was there already, and nothing was written";
  const auto there = client.find(given.id);
  const bool known = there && there->state != JobState::kDone;
  const bool other = there && (there->job.kind != given.kind || there->job.queue != given.queue ||
                               (known && there->job.body != given.body));
  warnings.add(begin + (other ? "; it has another kind, queue or body than the one given now" : ""));
}

Enqueued enqueue_one(const Client& client, Job job) {
  auto answers = take(bide::wait<std::vector<Result<Enqueued>>>(
      [&](auto done) { client.broker().enqueue({std::move(job)}, std::move(done)); }));
  if (answers.size() != 1) throw Failure{kUnreachable, "the broker answered too little"};
  return take(std::move(answers.front()));
}

int enqueue(const Invocation& call) {
  const EnqueueOptions options = options_of(call);
  const Milliseconds timeout = timeout_of(call);
  const Job job = make_job(call.argument(0), read_body(call.argument(1)), options);
  const Time moment = now();
  check(job, moment);
  Warnings warnings(call.json());
  warn(job, moment, warnings);
  check_callback(call, job, warnings);
  Client client = open_client(call, Missing::kCreate);
  warn_of_completions(call, client, job, warnings);
  // Before anything is done: the job would be there, and nobody could wait for it.
  if (const Capabilities can = client.broker().capabilities(); call.has(kWaitFlag.name) && !can.inspect) {
    fail_usage("--wait: this broker cannot tell when a job is done; nothing was enqueued: " + can.why_not);
  }
  if (job.priority != 0 && !client.broker().capabilities().priorities) {
    warnings.add("--priority: this broker carries it and does not obey it");
  }
  const Enqueued enqueued = enqueue_one(client, job);
  if (enqueued.existed) warn_existed(client, job, warnings);
  if (call.has(kWaitFlag.name)) return wait_and_print(client, enqueued.id, timeout, call.json(), &warnings);
  if (call.json()) {
    std::puts(JsonObject()
                  .add("id", enqueued.id.to_string())
                  .add("existed", enqueued.existed)
                  .add("warnings", warnings.to_json())
                  .text()
                  .c_str());
  } else {
    std::puts(enqueued.id.to_string().c_str());
  }
  return kOk;
}

}  // namespace

std::vector<Command> enqueue_commands() {
  return {
      {.path = "enqueue",
       .summary = "Add a job; it is durable when the command returns",
       .details = "Prints the id of the job. With --wait it prints the job's result, and exits 1 when the job is dead.",
       .arguments = {{"KIND", "chooses the handler, such as send_email"},
                     {"BODY", "the text itself; - for stdin; @FILE for a file", true}},
       .flags = {{"--queue", "NAME", "the line to wait in; default: default"},
                 {"--delay", "DURATION", "not before so long from now: 250ms, 10s, 1h30m, 2d"},
                 {"--due", "TIME", "not before this time: 2026-01-02T03:04:05Z"},
                 {"--expires", "TIME", "dead when it has not started by then: 2026-01-02T03:04:05Z"},
                 {"--retry", "POLICY",
                  "exponential(1s,2,1h,x25), steps(10s,100s,1h), fixed(30s,x5), none; all but the last also with "
                  "a random part, as in fixed(30s,x5,jitter=0.2); default: exponential(1s,2,1h,x25)"},
                 {"--ttr", "DURATION", "time limit of one attempt, 1ms to 30d; default: 30m"},
                 {"--priority", "N", "-100 to 100; higher runs first; default: 0"},
                 {"--unique", "KEY", "refused while another job with this key is alive"},
                 {"--id", "UUID",
                  "makes it harmless to enqueue the job twice: the second time nothing is written, and it says so"},
                 {"--content-type", "TYPE", "of the body; default: application/octet-stream"},
                 {"--header", "NAME=VALUE", "carried along with the job; may be given several times", true},
                 kWaitFlag,
                 kTimeoutFlag,
                 kUrlFlag,
                 kJsonFlag},
       .run = enqueue}};
}

}  // namespace bide::cli
