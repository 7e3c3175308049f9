#include "cli/job_flags.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/failure.h"
#include "core/did_you_mean.h"
#include "core/enums.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "platform/descriptor.h"
#include "wire/fields.h"

namespace bide::cli {

namespace {

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

struct FieldFlag {
  std::string_view field;
  std::string_view flag;
};

constexpr auto kJobFlags = std::to_array<Flag>({
    {"--queue", "NAME", "the line to wait in; default: default"},
    {"--retry", "POLICY",
     "exponential(1s,2,1h,x25), steps(10s,100s,1h), fixed(30s,x5), none; all but the last also with "
     "a random part, as in fixed(30s,x5,jitter=0.2); default: exponential(1s,2,1h,x25)"},
    {"--time-limit", "DURATION", "time limit of one attempt, 1ms to 30d; default: 30m"},
    {"--priority", "N", "-100 to 100; higher runs first; default: 0"},
    {"--unique", "KEY", "refused while another job with this key is alive"},
    {"--unique-for", "DURATION", "the key is held at least so long, whatever becomes of the job"},
    {"--on-conflict", "WHAT",
     "when another job holds the key: refuse; existing prints its id; replace takes its place while it waits"},
    {"--group", "GROUP", "shares the limits that the queue has for each group (bide queue rules), such as tenant:42"},
    {"--content-type", "TYPE", "of the body; default: application/octet-stream"},
    kHeadersFlag,
});

// The flags that are not named after their field.
constexpr auto kFieldFlags = std::to_array<FieldFlag>({
    {"kind", "KIND"},
    {"body", "BODY"},
    {"unique_key", "--unique"},
    {"headers", "--header"},
});

// One of the names of an enumeration; the first when the flag is not given.
template <class E>
E choice_of(const Invocation& call, std::string_view flag) {
  const auto given = call.value(flag);
  if (!given) return E{};
  const wire::Names names = wire::names_until<core::kLast<E>>();
  const auto found = std::find(names.begin(), names.end(), *given);
  if (found != names.end()) return static_cast<E>(found - names.begin());
  std::string known;
  for (const std::string_view name : names) known += (known.empty() ? "" : ", ") + std::string(name);
  fail_usage(std::string(flag) + ": " + core::quoted(*given) + " is not one of " + known + core::did_you_mean(*given, names));
}

}  // namespace

void fail_to_read(const std::string& name, int error) {
  const int exit_code = error == EACCES || error == EPERM ? kNotPermitted : error == EIO ? kInputOutput : kNotThere;
  throw Failure{exit_code, "cannot read the body from " + name + ": " + std::strerror(error)};
}

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

std::optional<RetryPolicy> retry_of(const Invocation& call) {
  const auto text = call.value("--retry");
  if (!text) return std::nullopt;
  auto policy = RetryPolicy::parse(*text);
  if (!policy) fail_usage("--retry: " + policy.error().message);
  return std::move(*policy);
}

JobId id_of(std::string_view flag, const std::string& text) {
  const auto id = JobId::parse(text);
  if (!id) fail_usage(std::string(flag) + ": " + id.error().message);
  if (id->is_nil()) fail_usage(std::string(flag) + ": all zeros means no id; give another UUID, or leave the flag out");
  return *id;
}

std::vector<JobId> ids_of(const Invocation& call, std::string_view flag) {
  std::vector<JobId> ids;
  for (const std::string& text : call.values(flag)) ids.push_back(id_of(flag, text));
  return ids;
}

std::vector<Flag> with_job_flags(std::vector<Flag> others) {
  others.insert(others.begin(), kJobFlags.begin(), kJobFlags.end());
  return others;
}

EnqueueOptions enqueue_options(const Invocation& call) {
  EnqueueOptions options;
  options.queue = call.value_or("--queue", options.queue);
  if (call.has("--delay") && call.has("--due")) fail_usage("--delay and --due: give one of them, not both");
  options.delay = call.duration("--delay").value_or(options.delay);
  options.due = call.time("--due");
  options.expires = call.until("--expires");
  options.time_limit = call.duration("--time-limit").value_or(options.time_limit);
  options.priority = static_cast<int>(call.number("--priority", 0, -100, 100));
  options.retry = retry_of(call).value_or(options.retry);
  options.unique_key = call.value_or("--unique", "");
  if (call.has("--unique") && options.unique_key.empty()) {
    fail_usage("--unique: the key is empty; give one, or leave the flag out");
  }
  options.unique_for = call.duration("--unique-for").value_or(options.unique_for);
  options.on_conflict = choice_of<OnConflict>(call, "--on-conflict");
  options.group = call.value_or("--group", "");
  options.after = ids_of(call, "--after");
  options.after_death = choice_of<AfterDeath>(call, "--after-death");
  if (const auto flow = call.value("--flow")) options.flow = id_of("--flow", *flow);
  if (const auto id = call.value("--id")) options.id = id_of("--id", *id);
  options.content_type = call.value_or("--content-type", "");
  options.headers = headers_of(call);
  return options;
}

std::string flag_of(std::string_view field) {
  for (const FieldFlag& each : kFieldFlags) {
    if (each.field == field) return std::string(each.flag);
  }
  std::string flag = "--" + std::string(field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

void check_job(const Job& job, Time moment) {
  const auto problem = core::find_problem(job, moment);
  if (problem) throw Failure{kUsage, flag_of(problem->field) + ": " + problem->message, std::string(problem->code)};
}

}  // namespace bide::cli
