#include "brokers/rabbitmq/job_message.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "brokers/rabbitmq/version_facts.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/request_rules.h"

namespace bide::brokers::rabbitmq {

namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::string_view kUnreadableKind = "unreadable";
constexpr std::string_view kWhyHeader = "bide-unreadable";

constexpr DeadReason kDeadReasons[] = {DeadReason::kExhausted, DeadReason::kRejected, DeadReason::kExpired,
                                       DeadReason::kPoison};
constexpr Fault kFaults[] = {Fault::kFailed, Fault::kTimedOut, Fault::kLost, Fault::kCrashed};

const Job kUsual;

std::int64_t count_of(Time time) { return time.time_since_epoch().count(); }
Time time_of(std::int64_t ms) { return Time(Milliseconds(ms)); }

Time floor_to_ms(std::int64_t us) { return Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(us))); }

Error unreadable(std::string why) { return {ErrorCode::kInvalidArgument, std::move(why)}; }

template <class Enum, std::size_t n>
std::optional<Enum> parse_enum(const Enum (&all)[n], std::string_view text) {
  for (const Enum one : all) {
    if (to_string(one) == text) return one;
  }
  return std::nullopt;
}

// ---- Reading: each says what is wrong, or nothing.

// Reads headers by name; remembers the first that has the wrong type.
class HeaderReader {
 public:
  explicit HeaderReader(const FieldTable& headers) : headers_(headers) {}

  std::optional<std::int64_t> number(std::string_view name) {
    const Field* field = find_field(headers_, name);
    if (field == nullptr) return std::nullopt;
    if (const std::int64_t* value = field->number()) return *value;
    return fail(name), std::nullopt;
  }
  const std::string* text(std::string_view name) {
    const Field* field = find_field(headers_, name);
    if (field != nullptr && field->text() == nullptr) fail(name);
    return field == nullptr ? nullptr : field->text();
  }
  const FieldList* list(std::string_view name) {
    const Field* field = find_field(headers_, name);
    if (field != nullptr && field->list() == nullptr) fail(name);
    return field == nullptr ? nullptr : field->list();
  }
  void fail(std::string_view name) {
    if (problem_.empty()) problem_ = "the header " + std::string(name) + " does not have the form it should";
  }
  const std::string& problem() const { return problem_; }

 private:
  const FieldTable& headers_;
  std::string problem_;
};

std::uint32_t small_count(std::int64_t value) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::uint32_t>::max() / 8));
}

void read_counts(HeaderReader& reader, AttemptCounts& counts) {
  const FieldList* list = reader.list("bide-counts");
  if (list == nullptr) return;
  std::uint32_t* const fields[] = {&counts.failed, &counts.timed_out, &counts.lost, &counts.crashed};
  if (list->size() != std::size(fields)) return reader.fail("bide-counts");
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    const std::int64_t* value = (*list)[i].number();
    if (value == nullptr) return reader.fail("bide-counts");
    *fields[i] = small_count(*value);
  }
}

void read_history(HeaderReader& reader, std::vector<AttemptError>& history) {
  const FieldList* list = reader.list("bide-history");
  if (list == nullptr) return;
  for (const Field& entry : *list) {
    const FieldList* parts = entry.list();
    if (parts == nullptr || parts->size() != 4) return reader.fail("bide-history");
    const std::int64_t* attempt = (*parts)[0].number();
    const std::int64_t* at = (*parts)[1].number();
    const std::string* fault = (*parts)[2].text();
    const std::string* text = (*parts)[3].text();
    const std::optional<Fault> known = fault == nullptr ? std::nullopt : parse_enum(kFaults, *fault);
    if (attempt == nullptr || at == nullptr || text == nullptr || !known) return reader.fail("bide-history");
    history.push_back({small_count(*attempt), time_of(*at), *known, text->substr(0, Limits::kErrorBytes)});
  }
  if (history.size() > Limits::kHistory) {
    history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(Limits::kHistory));
  }
}

void read_user_headers(HeaderReader& reader, Headers& headers) {
  const FieldList* list = reader.list("bide-headers");
  if (list == nullptr) return;
  if (list->size() % 2 != 0) return reader.fail("bide-headers");
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < list->size(); i += 2) {
    const std::string* name = (*list)[i].text();
    const std::string* value = (*list)[i + 1].text();
    if (name == nullptr || value == nullptr) return reader.fail("bide-headers");
    bytes += name->size() + value->size();
    if (bytes > Limits::kHeaderBytes) return reader.fail("bide-headers");
    headers.emplace_back(*name, *value);
  }
}

// So that a nonsensical time of a stranger overflows nowhere.
bool believable_ms(std::int64_t ms) { return ms > -10'000'000'000'000 && ms < 100'000'000'000'000; }

Status read_headers(const FieldTable& headers, JobMessage& message) {
  HeaderReader reader(headers);
  if (reader.number("bide-format").value_or(kFormat) != kFormat) {
    return unreadable("written by a newer version of bide");
  }
  Job& job = message.job;
  message.generation = reader.number("bide-generation").value_or(0);
  message.published = std::max(message.generation, reader.number("bide-published").value_or(message.generation));
  if (!believable_ms(message.published / 1000)) return unreadable("the header bide-published is out of range");
  if (const auto due = reader.number("bide-due")) {
    if (!believable_ms(*due)) return unreadable("the header bide-due is out of range");
    message.due = time_of(*due);
  }
  message.due_by_wall_clock = find_field(headers, "bide-wall") != nullptr;
  message.running = find_field(headers, "bide-running") != nullptr;
  if (const auto expires = reader.number("bide-expires")) {
    if (!believable_ms(*expires)) return unreadable("the header bide-expires is out of range");
    job.expires = time_of(*expires);
  }
  if (const auto limit = reader.number("bide-limit")) {
    if (*limit <= 0 || Milliseconds(*limit) > core::kLongestTimeLimit) {
      return unreadable("the header bide-limit is out of range");
    }
    job.time_limit = Milliseconds(*limit);
  }
  if (const auto priority = reader.number("bide-priority")) {
    if (*priority < core::kLowestPriority || *priority > core::kHighestPriority) {
      return unreadable("the header bide-priority is out of range");
    }
    job.priority = static_cast<int>(*priority);
  }
  if (const std::string* retry = reader.text("bide-retry")) {
    Result<RetryPolicy> policy = RetryPolicy::parse(*retry);
    if (!policy) return unreadable("the header bide-retry is no policy: " + policy.error().message);
    job.retry = std::move(*policy);
  }
  read_user_headers(reader, job.headers);
  read_counts(reader, message.counts);
  read_history(reader, message.history);
  message.token = static_cast<std::uint64_t>(std::max<std::int64_t>(0, reader.number("bide-token").value_or(0)));
  if (const std::string* note = reader.text("bide-note")) message.note = note->substr(0, Limits::kErrorBytes);
  if (const std::string* dead = reader.text("bide-dead")) {
    message.dead = parse_enum(kDeadReasons, *dead);
    if (!message.dead) reader.fail("bide-dead");
  }
  message.dead_at = reader.number("bide-dead-at").value_or(0);
  if (!believable_ms(message.dead_at / 1000)) return unreadable("the header bide-dead-at is out of range");
  if (!reader.problem().empty()) return unreadable(reader.problem());
  return {};
}

JobId id_of(const AmqpMessage& message) {
  const Result<JobId> given = JobId::parse(message.message_id);
  if (given && !given->is_nil()) return *given;
  const std::string stamp = message.timestamp ? std::to_string(*message.timestamp) : "";
  return id_by_content(message.message_id + "|" + message.correlation_id + "|" + stamp, message.body);
}

}  // namespace

Status check_job(const Job& job, Time now) {
  if (Status valid = core::validate(job, now); !valid) return valid;
  if (job.unique_key.empty()) return {};
  return Error{ErrorCode::kUnsupported,
               "unique_key: RabbitMQ keeps no index of the jobs that wait, so it cannot tell whether the key is taken"};
}

bool is_unreadable(const AmqpMessage& message) { return find_field(message.headers, kWhyHeader) != nullptr; }

JobId id_by_content(std::string_view properties, std::string_view body) {
  std::uint64_t parts[2] = {0xcbf29ce484222325, 0x9e3779b97f4a7c15};
  for (const std::string_view text : {properties, body}) {
    for (const char c : text) {
      parts[0] = (parts[0] ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
      parts[1] = (parts[1] + parts[0]) * 0xff51afd7ed558ccd;
    }
    parts[1] ^= text.size();
  }
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t i = 0; i < JobId::kSize; ++i) bytes[i] = static_cast<std::uint8_t>(parts[i / 8] >> (8 * (i % 8)));
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x80);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  return JobId(bytes);
}

Time JobMessage::due_time() const { return due.value_or(floor_to_ms(published)); }

AmqpMessage encode(JobMessage message) {
  Job& job = message.job;
  AmqpMessage out;
  out.message_id = job.id.to_string();
  out.type = std::move(job.kind);
  out.content_type = std::move(job.content_type);
  out.body = std::move(job.body);
  if (!message.reply_to.empty()) {
    out.correlation_id = out.message_id;
    out.reply_to = std::move(message.reply_to);
  }
  if (core::header_of(job, core::kRequestHeader) == core::kTransientRequest) out.persistent = false;

  FieldTable& headers = out.headers;
  headers.emplace_back("bide-generation", message.generation);
  if (message.published != message.generation) headers.emplace_back("bide-published", message.published);
  if (message.due) {
    headers.emplace_back("bide-due", count_of(*message.due));
    if (message.due_by_wall_clock) headers.emplace_back("bide-wall", true);
  }
  if (message.due || message.dead) headers.emplace_back("bide-queue", job.queue);
  if (job.expires) headers.emplace_back("bide-expires", count_of(*job.expires));
  if (job.time_limit != kUsual.time_limit) headers.emplace_back("bide-limit", std::int64_t{job.time_limit.count()});
  if (job.priority != 0) headers.emplace_back("bide-priority", job.priority);
  if (!(job.retry == kUsual.retry)) headers.emplace_back("bide-retry", job.retry.to_string());
  if (!job.headers.empty()) {
    FieldList list;
    for (const auto& [name, value] : job.headers) {
      list.emplace_back(name);
      list.emplace_back(value);
    }
    headers.emplace_back("bide-headers", std::move(list));
  }
  if (message.counts.total() > 0) {
    const AttemptCounts& counts = message.counts;
    headers.emplace_back("bide-counts", FieldList{std::int64_t{counts.failed}, std::int64_t{counts.timed_out},
                                                  std::int64_t{counts.lost}, std::int64_t{counts.crashed}});
  }
  if (!message.history.empty()) {
    FieldList list;
    for (const AttemptError& error : message.history) {
      list.emplace_back(
          FieldList{std::int64_t{error.attempt}, count_of(error.at), Field(to_string(error.fault)), error.text});
    }
    headers.emplace_back("bide-history", std::move(list));
  }
  if (message.token > 0) headers.emplace_back("bide-token", static_cast<std::int64_t>(message.token));
  if (!message.note.empty()) headers.emplace_back("bide-note", message.note);
  if (message.running) headers.emplace_back("bide-running", true);
  if (message.dead) {
    headers.emplace_back("bide-dead", to_string(*message.dead));
    headers.emplace_back("bide-dead-at", message.dead_at);
  }
  return out;
}

Result<JobMessage> decode(AmqpMessage message, std::string_view queue) {
  JobMessage decoded;
  if (!core::is_name(message.type)) {
    return unreadable(message.type.empty() ? "the property `type`, the kind of the job, is missing"
                                           : "the property `type` is no kind: " + core::quoted(message.type));
  }
  if (Status read = read_headers(message.headers, decoded); !read) return read.error();
  Job& job = decoded.job;
  if (const Result<JobId> id = JobId::parse(message.message_id)) job.id = *id;
  job.kind = std::move(message.type);
  job.queue = queue;
  job.content_type = std::move(message.content_type);
  job.body = std::move(message.body);
  decoded.reply_to = std::move(message.reply_to);
  if (decoded.generation == 0 && message.timestamp) {
    const auto seconds = std::min<std::uint64_t>(*message.timestamp, 100'000'000'000);
    decoded.generation = decoded.published = static_cast<std::int64_t>(seconds) * 1'000'000;
  }
  return decoded;
}

void set_server_priority(AmqpMessage& message) {
  const Field* const field = find_field(message.headers, "bide-priority");
  if (field == nullptr || field->number() == nullptr) return;
  const std::int64_t priority =
      std::clamp<std::int64_t>(*field->number(), core::kLowestPriority, core::kHighestPriority);
  message.priority = server_priority(static_cast<int>(priority));
}

std::uint32_t delivery_count(const AmqpMessage& message) {
  const Field* field = find_field(message.headers, "x-delivery-count");
  const std::int64_t* count = field == nullptr ? nullptr : field->number();
  return count == nullptr ? 0 : small_count(*count);
}

void strip_travel_headers(FieldTable& headers) {
  std::erase_if(headers, [](const auto& entry) {
    const std::string& name = entry.first;
    return name == "CC" || name == "BCC" || name == "x-death" || name == "x-delivery-count" ||
           name == "x-acquired-count" || name.starts_with("x-first-death-") || name.starts_with("x-last-death-") ||
           name == "x-stream-offset";
  });
}

void record_fault(JobMessage& message, Fault fault, std::string_view text, Time at) {
  const std::uint32_t attempt = message.counts.total() + 1;
  std::uint32_t* const counters[] = {&message.counts.failed, &message.counts.timed_out, &message.counts.lost,
                                     &message.counts.crashed};
  *counters[static_cast<std::size_t>(fault)] += 1;
  message.history.push_back({attempt, at, fault, std::string(text.substr(0, Limits::kErrorBytes))});
  if (message.history.size() > Limits::kHistory) message.history.erase(message.history.begin());
}

AmqpMessage bury_unreadable(AmqpMessage message, std::string_view queue, std::string_view why, std::int64_t now_us) {
  strip_travel_headers(message.headers);
  std::erase_if(message.headers, [](const auto& entry) {
    return entry.first == kWhyHeader || entry.first == "bide-dead" || entry.first == "bide-dead-at" ||
           entry.first == "bide-queue";
  });
  message.headers.emplace_back(kWhyHeader, why);
  message.headers.emplace_back("bide-queue", queue);
  message.headers.emplace_back("bide-dead", to_string(DeadReason::kRejected));
  message.headers.emplace_back("bide-dead-at", now_us);
  message.expiration.clear();
  message.persistent = true;
  return message;
}

JobInfo dead_info(const AmqpMessage& message, std::string_view queue) {
  JobInfo info;
  info.state = JobState::kDead;
  const Field* why = find_field(message.headers, kWhyHeader);
  Result<JobMessage> decoded = why == nullptr ? decode(message, queue) : unreadable("");
  if (decoded) {
    info.due = decoded->due_time();
    info.counts = decoded->counts;
    info.attempts = decoded->counts.total();
    info.history = std::move(decoded->history);
    if (decoded->dead_at > 0) info.finished = floor_to_ms(decoded->dead_at);
    info.dead_reason = decoded->dead.value_or(DeadReason::kRejected);
    info.note = std::move(decoded->note);
    info.job = std::move(decoded->job);
    return info;
  }
  info.job.id = id_of(message);
  info.job.kind = kUnreadableKind;
  info.job.queue = queue;
  info.job.body = message.body;
  if (!message.content_type.empty()) info.job.content_type = message.content_type;
  if (!message.type.empty()) info.job.headers.emplace_back("type", message.type);
  const std::string text = why != nullptr && why->text() != nullptr ? *why->text() : decoded.error().message;
  const Field* at = find_field(message.headers, "bide-dead-at");
  const std::int64_t at_us = at != nullptr && at->number() != nullptr ? *at->number() : 0;
  if (at_us > 0 && believable_ms(at_us / 1000)) info.finished = floor_to_ms(at_us);
  info.due = info.finished.value_or(Time());
  info.dead_reason = DeadReason::kRejected;
  info.history.push_back({0, info.due, Fault::kFailed, "the message is no job: " + text});
  return info;
}

}  // namespace bide::brokers::rabbitmq
