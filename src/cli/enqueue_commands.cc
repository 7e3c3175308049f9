// bide enqueue.

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "bide/client.h"
#include "cli/command_groups.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/job_text.h"
#include "cli/json.h"
#include "cli/open_store.h"
#include "cli/waiting.h"
#include "core/duration.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

std::string read_all(std::istream& in) { return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}; }

std::string body_of(const std::string& argument) {
  if (argument == "-") return read_all(std::cin);
  if (!argument.starts_with("@")) return argument;
  std::ifstream file(argument.substr(1), std::ios::binary);
  if (!file) throw Failure{kNotThere, "cannot read the body from " + core::quoted(argument.substr(1))};
  return read_all(file);
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
  if (const auto id = call.value("--id")) options.id = take(JobId::parse(*id));
  options.content_type = call.value_or("--content-type", "");
  options.headers = headers_of(call);
  if (options.due && *options.due < now()) {
    std::fprintf(stderr, "bide: warning: --due is in the past: the job runs now\n");
  }
  return options;
}

int enqueue(const Invocation& call) {
  const EnqueueOptions options = options_of(call);
  const std::string body = body_of(call.argument(1));
  const Milliseconds timeout = timeout_of(call);
  Client client = open_client(call, Missing::kCreate);
  const JobId id = take(client.enqueue(call.argument(0), body, options));
  if (call.has(kWaitFlag.name)) return wait_and_print(client, id, timeout, call.json());
  if (call.json()) {
    std::puts(JsonObject().add("id", id.to_string()).text().c_str());
  } else {
    std::puts(id.to_string().c_str());
  }
  return kOk;
}

}  // namespace

std::vector<Command> enqueue_commands() {
  return {{.path = "enqueue",
           .summary = "Add a job; it is durable when the command returns",
           .details = "Prints the id of the job. With --wait it prints the job's result, and exits 1 when the job is dead.",
           .arguments = {{"KIND", "chooses the handler, such as send_email"},
                         {"BODY", "the text itself; - for stdin; @FILE for a file", true}},
           .flags = {{"--queue", "NAME", "the line to wait in; default: default"},
                     {"--delay", "DURATION", "not before so long from now: 250ms, 10s, 1h30m, 2d"},
                     {"--due", "TIME", "not before this time: 2026-01-02T03:04:05Z"},
                     {"--expires", "TIME", "dead when it has not started by then"},
                     {"--retry", "POLICY", "exponential(1s,2,1h,x25), steps(10s,100s,1h), fixed(30s,x5), none"},
                     {"--ttr", "DURATION", "time limit of one attempt; default: 30m"},
                     {"--priority", "N", "-100 to 100; higher runs first"},
                     {"--unique", "KEY", "refused while another job with this key is alive"},
                     {"--id", "UUID", "makes it harmless to enqueue the job twice"},
                     {"--content-type", "TYPE", "of the body; default: application/octet-stream"},
                     {"--header", "NAME=VALUE", "carried along with the job; may be given several times", true},
                     kWaitFlag,
                     kTimeoutFlag,
                     kUrlFlag,
                     kJsonFlag},
           .run = enqueue}};
}

}  // namespace bide::cli
