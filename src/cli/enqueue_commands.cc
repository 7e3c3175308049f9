// bide enqueue.

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/client.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/completion.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "platform/descriptor.h"

namespace bide::cli {

namespace {

constexpr Flag kWaitFlag = {"--wait", "", "wait until the job is done or dead"};

[[noreturn]] void fail_to_read(const std::string& name, int error) {
  const int exit_code = error == EACCES || error == EPERM ? kNotPermitted : error == EIO ? kInputOutput : kNotThere;
  throw Failure{exit_code, "cannot read the body from " + name + ": " + std::strerror(error)};
}

// Never reads more than a body may have, and one byte.
std::string read_all(int descriptor, const std::string& name) {
  std::string body;
  std::array<char, 64 * 1024> buffer;
  while (body.size() <= Limits::kBodyBytes) {
    const std::size_t wanted = std::min(buffer.size(), Limits::kBodyBytes + 1 - body.size());
    const ssize_t got = ::read(descriptor, buffer.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(name, errno);
    if (got == 0) return body;
    body.append(buffer.data(), static_cast<std::size_t>(got));
  }
  fail_usage("the body from " + name + " has more than " + std::to_string(Limits::kBodyBytes) +
             " bytes, which is the most; store it elsewhere and send its address");
}

// BODY as it is named on the command line: the text itself, - for stdin, @FILE.
std::string read_body(const std::string& argument) {
  if (argument == "-") return read_all(STDIN_FILENO, "stdin");
  if (!argument.starts_with("@")) return argument;
  const std::string path = argument.substr(1);
  if (path.empty()) {
    fail_usage("BODY: after @ the name of a file is expected; a body that begins with @ comes by stdin (-)");
  }
  const std::string name = core::quoted(path);
  const platform::Descriptor file = platform::Descriptor::open(path, O_RDONLY);
  if (!file.valid()) fail_to_read(name, errno);
  return read_all(file.get(), name);
}

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

EnqueueOptions enqueue_options(const Invocation& call) {
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

// The flags that are not named after their field.
constexpr auto kFieldFlags = std::to_array<FieldFlag>({
    {"kind", "KIND"},
    {"body", "BODY"},
    {"time_limit", "--ttr"},
    {"unique_key", "--unique"},
    {"headers", "--header"},
    {"content_type", "--content-type"},
});

void check_job(const Job& job, Time moment) {
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
  if (!core::header_of(job, core::kCallbackHeader).empty()) {
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
  if (!core::header_of(job, core::kOnDoneHeader).empty()) {
    warnings.add(std::string(core::kOnDoneHeader) +
                 (made ? ": delivered only by a bide server of this store"
                       : ": obeyed only when the job's worker gets it from a bide server"));
  }
  if (!made && !core::header_of(job, core::kReplyQueueHeader).empty()) {
    warnings.add(std::string(core::kReplyQueueHeader) + ": obeyed only when the job's worker gets it from a bide server");
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
  auto answers = ask<std::vector<Result<Enqueued>>>(
      [&](auto done) { client.broker().enqueue({std::move(job)}, std::move(done)); });
  if (answers.size() != 1) throw Failure{kUnreachable, "the broker answered too little"};
  return take(std::move(answers.front()));
}

int enqueue(const Invocation& call) {
  const EnqueueOptions options = enqueue_options(call);
  const Milliseconds timeout = timeout_of(call);
  const Job job = make_job(call.argument(0), read_body(call.argument(1)), options);
  const Time moment = now();
  check_job(job, moment);
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
  print(call,
        JsonObject().add("id", enqueued.id).add("existed", enqueued.existed).add("warnings", warnings.to_json()),
        enqueued.id.to_string() + "\n");
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
