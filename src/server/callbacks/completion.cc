#include "server/callbacks/completion.h"

#include <openssl/evp.h>

#include <array>
#include <utility>
#include <variant>

#include "core/job_rules.h"
#include "wire/job_json.h"
#include "wire/json_writer.h"

namespace bide::server {

namespace {

constexpr std::size_t kHeaderError = 512;

struct End {
  bool dead = false;
  std::string_view result = {};
  std::string_view result_content_type = {};
  std::string_view error = {};
  std::string_view reason = {};
};

// The same end gives the same ids, so that a settlement that is sent twice does not tell twice. A UUID of version 8.
JobId id_for(const JobId& origin, std::string_view purpose, std::string_view mark) {
  std::string text = "bide completion\n" + origin.to_string() + "\n";
  text.append(purpose).append("\n").append(mark);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = digest[i];
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x80);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  return JobId(bytes);
}

std::string on_done_body(const CompletionWish& wish, const End& end) {
  std::string body;
  wire::JsonWriter out(body);
  out.begin_object().field("id", wish.id).field("kind", wish.kind).field("queue", wish.queue);
  out.field("state", end.dead ? "dead" : "done").field("attempts", wish.attempts);
  if (end.dead) {
    out.field("reason", end.reason).field("error", end.error);
  } else if (end.result.size() > kMostToldResult) {
    out.field("result_bytes", end.result.size());
  } else if (!end.result.empty()) {
    const std::string_view type = content_type_or_default(end.result_content_type);
    wire::write_content(out, "result", end.result, type);
    out.field("result_content_type", type);
  }
  out.end_object();
  return body;
}

// Headers are single lines for many brokers.
std::string one_line(std::string_view text) {
  std::string line(text.substr(0, kHeaderError));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

Job on_done_job(const CompletionWish& wish, const End& end, const std::string& callback_queue, std::string_view mark) {
  Job job;
  job.id = id_for(wish.id, "on_done", mark);
  job.kind = kOnDoneKind;
  job.queue = callback_queue;
  job.content_type = wire::kJsonContentType;
  job.body = on_done_body(wish, end);
  job.headers = {{std::string(wire::kCallbackHeader), wish.on_done}, {"bide-origin-id", wish.id.to_string()}};
  if (!wish.traceparent.empty()) job.headers.emplace_back("traceparent", wish.traceparent);
  return job;
}

Job reply_job(const CompletionWish& wish, const End& end, std::string_view mark) {
  Job job;
  job.id = id_for(wish.id, "reply", mark);
  job.kind = wish.kind + std::string(kReplyKindSuffix);
  job.queue = wish.reply_queue;
  job.content_type = end.result_content_type;
  job.body = end.result;
  job.headers = {{"bide-origin-id", wish.id.to_string()},
                 {"bide-origin-kind", wish.kind},
                 {"bide-origin-queue", wish.queue},
                 {"bide-origin-state", end.dead ? "dead" : "done"}};
  if (end.dead) job.headers.emplace_back("bide-origin-error", one_line(end.error));
  if (!wish.traceparent.empty()) job.headers.emplace_back("traceparent", wish.traceparent);
  return job;
}

// A wish that cannot be fulfilled must not stand in the way of the outcome: it is left out. Jobs that come through the
// server were checked when they were created.
std::vector<Job> jobs_for(const CompletionWish& wish, const End& end, const std::string& queue, std::string_view mark) {
  std::vector<Job> jobs;
  const auto add = [&](Job job) {
    if (core::find_problem(job, Time())) job.content_type.clear();
    if (!core::find_problem(job, Time())) jobs.push_back(std::move(job));
  };
  if (!wish.on_done.empty()) add(on_done_job(wish, end, queue, mark));
  if (!wish.reply_queue.empty()) add(reply_job(wish, end, mark));
  return jobs;
}

}  // namespace

CompletionWish wish_of(const Job& job, std::uint32_t attempts) {
  if (job.headers.empty()) return {};
  CompletionWish wish;
  wish.on_done = wire::header_of(job, wire::kOnDoneHeader);
  wish.reply_queue = wire::header_of(job, wire::kReplyQueueHeader);
  if (wish.empty()) return {};
  wish.id = job.id;
  wish.kind = job.kind;
  wish.queue = job.queue;
  wish.traceparent = wire::header_of(job, "traceparent");
  wish.attempts = attempts;
  return wish;
}

Settlement with_completion(Settlement settlement, const CompletionWish& wish, const std::string& callback_queue) {
  if (wish.empty()) return settlement;
  End end;
  if (const auto* done = std::get_if<Done>(&settlement.outcome)) {
    end.result = done->result;
    end.result_content_type = done->content_type;
  } else if (const auto* dead = std::get_if<Dead>(&settlement.outcome)) {
    end.dead = true;
    end.error = dead->error;
    end.reason = to_string(dead->reason);
  } else {
    return settlement;
  }
  for (Job& job : jobs_for(wish, end, callback_queue, std::to_string(settlement.lease.token))) {
    settlement.effects.push_back(std::move(job));
  }
  return settlement;
}

Settlement with_completion(Settlement settlement, const Lease& lease, const std::string& callback_queue) {
  return with_completion(std::move(settlement), wish_of(lease.job, lease.attempt), callback_queue);
}

std::vector<Job> completion_jobs(const JobInfo& info, CompletionWish wish, const std::string& callback_queue,
                                 std::string_view mark) {
  wish.attempts = info.attempts;
  if (wish.empty() || (info.state != JobState::kDone && info.state != JobState::kDead)) return {};
  End end;
  end.dead = info.state == JobState::kDead;
  end.result = info.result;
  end.result_content_type = info.result_content_type;
  if (end.dead) {
    end.error = info.history.empty() ? std::string_view(info.note) : info.history.back().text;
    end.reason = to_string(info.dead_reason.value_or(DeadReason::kExhausted));
  }
  return jobs_for(wish, end, callback_queue, mark);
}

}  // namespace bide::server
