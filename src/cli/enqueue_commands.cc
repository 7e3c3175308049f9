// bide enqueue, bide publish, bide request.

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/client.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/job_flags.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/completion.h"
#include "core/did_you_mean.h"
#include "core/job_ids.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/topics.h"
#include "platform/descriptor.h"
#include "platform/random.h"
#include "wire/batch_json.h"

namespace bide::cli {

namespace {

constexpr Flag kWaitFlag = {"--wait", "", "wait until the job is done or dead"};

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

// ---- Many, from a file or stdin: one job a line, as POST /v1/jobs takes them.

constexpr Flag kNdjsonFlag = {"--ndjson", "FILE",
                              "many jobs, one JSON object a line, as POST /v1/jobs takes them; - for stdin"};
constexpr std::size_t kLineBytes = Limits::kBodyBytes * 2;  // As base64, with everything else.
constexpr std::size_t kBatchJobs = 500;
constexpr std::size_t kBatchBytes = 4 * 1024 * 1024;

// Lines of a descriptor, with their numbers.
class LineReader {
 public:
  LineReader(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  // Empty lines are passed over. False at the end.
  bool next(std::string& line) {
    do {
      if (!read_line(line)) return false;
      ++number_;
    } while (line.find_first_not_of(" \t\r") == std::string::npos);
    return true;
  }
  std::size_t number() const { return number_; }

 private:
  bool read_line(std::string& line) {
    std::size_t looked = 0;
    std::size_t end;
    while ((end = buffer_.find('\n', begin_ + looked)) == std::string::npos) {
      looked = buffer_.size() - begin_;
      if (looked > kLineBytes) {
        fail_usage("line " + std::to_string(number_ + 1) + " of " + name_ + " has more than " + std::to_string(kLineBytes) +
                   " bytes, which is the most");
      }
      buffer_.erase(0, std::exchange(begin_, 0));
      if (ended_ || !read_more()) {
        line = std::exchange(buffer_, {});
        return !line.empty();
      }
    }
    line = buffer_.substr(begin_, end - begin_);
    begin_ = end + 1;
    return true;
  }

  bool read_more() {
    std::array<char, 64 * 1024> bytes;
    ssize_t got;
    do {
      got = ::read(descriptor_, bytes.data(), bytes.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail_to_read(name_, errno);
    buffer_.append(bytes.data(), static_cast<std::size_t>(got));
    ended_ = got == 0;
    return got > 0;
  }

  const int descriptor_;
  const std::string name_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t number_ = 0;
  bool ended_ = false;
};

// Enqueues line after line, in batches. A line that is no valid job is reported and passed over; when the broker takes no more
// it stops there.
class LinesEnqueuer {
 public:
  LinesEnqueuer(const Invocation& call, const Client& client) : call_(call), client_(client) {}

  void add(const std::string& line, std::size_t number) {
    wire::Batch batch;
    auto problem = wire::read_ndjson_batch(line, now(), batch);
    if (!problem && !batch.items.empty()) problem = batch.items.front().problem;
    if (problem) {
      // The number of the only line that it was given.
      constexpr std::string_view kOnlyLine = "line 1: ";
      if (problem->detail.starts_with(kOnlyLine)) problem->detail.erase(0, kOnlyLine.size());
      return report(number, {ErrorCode::kInvalidArgument, problem->detail});
    }
    if (auto label = resolve(batch.items.front())) return report(number, *label);
    bytes_ += line.size();
    jobs_.push_back(std::move(batch.items.front().job));
    numbers_.push_back(number);
    if (jobs_.size() == kBatchJobs || bytes_ >= kBatchBytes) flush();
  }

  void flush() {
    if (jobs_.empty()) return;
    bytes_ = 0;
    const std::vector<std::size_t> numbers = std::exchange(numbers_, {});
    const auto answered = wait<std::vector<Result<Enqueued>>>(
        [&](auto done) { client_.broker().enqueue(std::exchange(jobs_, {}), std::move(done)); });
    if (!answered) {
      const std::string lines = "lines " + std::to_string(numbers.front()) + " to " + std::to_string(numbers.back());
      const bool nothing_done = answered.error().code != ErrorCode::kUnconfirmed;
      fail({answered.error().code, "stopped at line " + std::to_string(numbers.front()) + ", " + sums() + "; " + lines +
                                       (nothing_done ? " were not" : " may have been") + ": " + answered.error().message});
    }
    const std::vector<Result<Enqueued>>& answers = *answered;
    std::optional<Error> full;
    for (std::size_t i = 0; i < answers.size() && i < numbers.size(); ++i) {
      if (answers[i]) {
        say_enqueued(numbers[i], *answers[i]);
      } else {
        const ErrorCode code = answers[i].error().code;
        const bool is_its_own = code == ErrorCode::kInvalidArgument || code == ErrorCode::kAlreadyExists ||
                                code == ErrorCode::kNotFound || code == ErrorCode::kWrongState;
        if (!is_its_own) full = answers[i].error();
        report(numbers[i], answers[i].error());
      }
    }
    if (full) fail({full->code, "stopped at line " + std::to_string(numbers.back()) + ", " + sums() + ": " + full->message});
  }

  int finish() {
    flush();
    if ((first_ || existed_ > 0) && !call_.json()) tell(sums());
    if (first_) fail({first_->code, "not every line was enqueued; the first that was not is " + first_->message});
    return kOk;
  }

 private:
  // Puts ids in place of the labels of lines before.
  std::optional<Error> resolve(wire::BatchItem& item) {
    const auto find = [&](const std::string& label) -> Result<JobId> {
      if (const auto found = labels_.find(label); found != labels_.end()) return found->second;
      return Error{ErrorCode::kInvalidArgument, "no valid line before this one has the label " + core::quoted(label)};
    };
    for (const std::string& label : item.labels.after) {
      const auto id = find(label);
      if (!id) return id.error();
      item.job.after.push_back(*id);
    }
    if (!item.labels.label.empty()) {
      if (item.job.id.is_nil()) item.job.id = ids_.next(now().time_since_epoch().count(), random_.next());
      if (!labels_.emplace(item.labels.label, item.job.id).second) {
        return Error{ErrorCode::kInvalidArgument, "the label " + core::quoted(item.labels.label) + " is that of a line before"};
      }
    }
    if (!item.labels.flow.empty()) {
      const auto id = find(item.labels.flow);
      if (!id) return id.error();
      item.job.flow = *id;
    }
    return std::nullopt;
  }

  std::string sums() const {
    return std::to_string(enqueued_) + " lines were enqueued, " +
           (existed_ > 0 ? std::to_string(existed_) + " have the id of a job that was there already, " : "") +
           std::to_string(failed_) + " were not";
  }

  void say_enqueued(std::size_t number, const Enqueued& enqueued) {
    ++(enqueued.existed ? existed_ : enqueued_);
    print(call_, JsonObject().add("line", number).add("id", enqueued.id).add("existed", enqueued.existed),
          enqueued.id.to_string() + "\n");
  }

  void report(std::size_t number, const Error& error) {
    ++failed_;
    const std::string text = "line " + std::to_string(number) + ": " + error.message;
    if (call_.json()) {
      print(JsonObject().add("line", number).add("code", to_string(error.code)).add("error", error.message));
    } else {
      tell("error: " + text);
    }
    if (!first_) first_ = Error{error.code, text};
  }

  const Invocation& call_;
  const Client& client_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> numbers_;
  std::map<std::string, JobId> labels_;
  core::JobIdSource ids_;
  platform::SystemRandom random_;
  std::size_t bytes_ = 0;
  std::uint64_t enqueued_ = 0;
  std::uint64_t existed_ = 0;
  std::uint64_t failed_ = 0;
  std::optional<Error> first_;
};

int enqueue_lines(const Invocation& call) {
  for (const Flag& flag : call.command().flags) {
    const bool fits = flag.name == kNdjsonFlag.name || flag.name == kUrlFlag.name || flag.name == kJsonFlag.name;
    if (!fits && call.has(flag.name)) fail_usage(std::string(flag.name) + " does not go with --ndjson: each line says it itself");
  }
  if (!call.arguments().empty()) fail_usage("--ndjson takes no KIND and no BODY: each line has its own");
  const std::string path = *call.value(kNdjsonFlag.name);
  const std::string name = path == "-" ? "stdin" : core::quoted(path);
  platform::Descriptor file;
  if (path != "-") {
    file = platform::Descriptor::open(path, O_RDONLY);
    if (!file.valid()) fail_to_read(name, errno);
  }
  const Client client = open_client(call, Missing::kCreate);
  LineReader lines(path == "-" ? STDIN_FILENO : file.get(), name);
  LinesEnqueuer enqueuer(call, client);
  for (std::string line; lines.next(line);) enqueuer.add(line, lines.number());
  return enqueuer.finish();
}

int enqueue(const Invocation& call) {
  if (call.has(kNdjsonFlag.name)) return enqueue_lines(call);
  if (call.arguments().empty()) fail_usage("missing KIND (usage: " + usage(call.command()) + ")");
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
  if (enqueued.existed && enqueued.id == job.id) warn_existed(client, job, warnings);
  if (call.has(kWaitFlag.name)) return wait_and_print(client, enqueued.id, timeout, call.json(), &warnings);
  JsonObject json;
  json.add("id", enqueued.id).add("existed", enqueued.existed).add("replaced", enqueued.replaced);
  print(call, json.add("warnings", warnings.to_json()), enqueued.id.to_string() + "\n");
  return kOk;
}

int publish(const Invocation& call) {
  const Job event = make_job(call.argument(0), read_body(call.argument(1)), enqueue_options(call));
  const Time moment = now();
  check_job(event, moment);
  if (Status valid = core::validate_event(event, moment); !valid) fail_usage("TOPIC: " + valid.error().message);
  Client client = open_client(call, Missing::kCreate);
  auto answers = ask<std::vector<Result<Published>>>(
      [&](auto done) { client.broker().publish({event}, std::move(done)); });
  if (answers.size() != 1) throw Failure{kUnreachable, "the broker answered too little"};
  const Published published = take(std::move(answers.front()));
  Warnings warnings(call.json());
  if (published.groups == 0) warnings.add("no queue is bound to this topic, or all of them are full: nobody gets the event");
  if (published.full > 0) warnings.add(std::to_string(published.full) + " queues are full and do not get the event");
  print(call,
        JsonObject()
            .add("id", published.id)
            .add("groups", std::uint64_t{published.groups})
            .add("full", std::uint64_t{published.full})
            .add("warnings", warnings.to_json()),
        published.id.to_string() + "\n");
  return kOk;
}

int request(const Invocation& call) {
  RequestOptions options;
  options.timeout = call.duration(kTimeoutFlag.name).value_or(options.timeout);
  options.queue = call.value_or("--queue", options.queue);
  options.content_type = call.value_or("--content-type", "");
  const std::string body = read_body(call.argument(1));
  check_job(make_request(call.argument(0), body, options), now());
  Client client = open_client(call, Missing::kCreate);
  const Result<Reply> reply = client.request(call.argument(0), body, options).get();
  if (!reply) fail(reply.error());
  print(call, JsonObject().add_bytes("reply", reply->body).add("content_type", content_type_or_default(reply->content_type)),
        reply->body);
  return kOk;
}

}  // namespace

std::vector<Command> enqueue_commands() {
  return {
      {.path = "enqueue",
       .summary = "Add a job; it is durable when the command returns",
       .details = "Prints the id of the job. With --wait it prints the job's result, and exits 1 when the job is dead.\n"
                  "With --ndjson it prints an id for each line; a line that is no valid job is reported with its number,\n"
                  "and the others are enqueued all the same. A line can name those before it by their label: after a\n"
                  "line with \"label\":\"fetch\" another may say \"after\":[\"#fetch\"].",
       .arguments = {{"KIND", "chooses the handler, such as send_email", true},
                     kBodyArgument},
       .flags = with_job_flags(
           {{"--delay", "DURATION", "not before so long from now: 250ms, 10s, 1h30m, 2d"},
            {"--due", "TIME", "not before this time: 2026-01-02T03:04:05Z"},
            {"--expires", "WHEN", "dead when it has not started by then: 1h, or 2026-01-02T03:04:05Z"},
            {"--after", "ID", "waits until this job is done; may be given several times", true},
            {"--after-death", "WHAT", "when one of them dies: hold, until it is replayed; cancel this one; run it"},
            {"--flow", "ID", "shown, cancelled and replayed with the others of this flow (bide flow show): any UUID"},
            {"--id", "UUID",
             "makes it harmless to enqueue the job twice: the second time nothing is written, and it says so"},
            kNdjsonFlag,
            kWaitFlag,
            kTimeoutFlag,
            kUrlFlag,
            kJsonFlag}),
       .run = enqueue},
      {.path = "publish",
       .summary = "Publish an event: every queue that is bound to its topic gets a job (bide queue bind)",
       .details = "Prints the id of the event. It is durable in all of these queues when the command returns.",
       .arguments = {{"TOPIC", "words between dots, such as order.created; the kind of the jobs"},
                     kBodyArgument},
       .flags = {{"--delay", "DURATION", "not before so long from now: 250ms, 10s, 1h30m, 2d"},
                 {"--id", "UUID", "makes it harmless to publish the event twice"},
                 {"--content-type", "TYPE", "of the body; default: application/octet-stream"},
                 {"--header", "NAME=VALUE", "carried along with the event; may be given several times", true},
                 kUrlFlag,
                 kJsonFlag},
       .run = publish},
      {.path = "request",
       .summary = "Send a request and print its reply",
       .details = "A worker answers it (worker.reply, or bide work). Prints the reply's bytes as they are. Exits 1 when the "
                  "handler failed, and 75 when no reply came in time.",
       .arguments = {{"KIND", "chooses the handler"}, kBodyArgument},
       .flags = {{"--queue", "NAME", "the line to wait in; default: default"},
                 {"--content-type", "TYPE", "of the body; default: application/octet-stream"},
                 {kTimeoutFlag.name, "DURATION", "how long to wait for the reply; default: 5s"},
                 kUrlFlag,
                 kJsonFlag},
       .run = request}};
}

}  // namespace bide::cli
