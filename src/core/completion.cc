#include "core/completion.h"

#include <string>
#include <utility>
#include <variant>

#include "core/job_rules.h"

namespace bide::core {

namespace {

constexpr std::size_t kHeaderError = 512;

// Headers are single lines for many brokers.
std::string one_line(std::string_view text) {
  std::string line(text.substr(0, kHeaderError));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

Headers origin_of(const Job& job, bool dead) {
  Headers headers = {{std::string(kOriginIdHeader), job.id.to_string()},
                     {std::string(kOriginKindHeader), job.kind},
                     {std::string(kOriginQueueHeader), job.queue},
                     {std::string(kOriginStateHeader), dead ? "dead" : "done"}};
  if (const auto trace = header_of(job, "traceparent"); !trace.empty()) headers.emplace_back("traceparent", trace);
  return headers;
}

Job on_done_job(const Job& job, std::uint32_t attempts, const Done* done, const Dead* dead) {
  Job made;
  made.kind = kOnDoneKind;
  const std::string_view queue = header_of(job, kOnDoneQueueHeader);
  made.queue = queue.empty() ? kUsualCallbackQueue : queue;
  made.headers = origin_of(job, dead != nullptr);
  made.headers.emplace_back(kCallbackHeader, header_of(job, kOnDoneHeader));
  made.headers.emplace_back(kOriginAttemptsHeader, std::to_string(attempts));
  if (dead != nullptr) {
    made.headers.emplace_back(kOriginReasonHeader, to_string(dead->reason));
    made.body = dead->error;
    made.content_type = "text/plain; charset=utf-8";
  } else if (done->result.size() > kMostToldResult) {
    made.headers.emplace_back(kOriginResultBytesHeader, std::to_string(done->result.size()));
  } else {
    made.body = done->result;
    made.content_type = done->content_type;
  }
  return made;
}

Job reply_job(const Job& job, const Done* done, const Dead* dead) {
  Job made;
  made.kind = job.kind + std::string(kReplyKindSuffix);
  made.queue = header_of(job, kReplyQueueHeader);
  made.headers = origin_of(job, dead != nullptr);
  if (dead != nullptr) {
    made.headers.emplace_back(kOriginErrorHeader, one_line(dead->error));
  } else {
    made.body = done->result;
    made.content_type = done->content_type;
  }
  return made;
}

}  // namespace

std::string_view header_of(const Job& job, std::string_view name) {
  for (const auto& [header, value] : job.headers) {
    if (header == name) return value;
  }
  return {};
}

bool wants_completion(const Job& job) {
  return !header_of(job, kOnDoneHeader).empty() || !header_of(job, kReplyQueueHeader).empty();
}

std::vector<Job> completion_jobs(const Job& job, std::uint32_t attempts, const Outcome& outcome) {
  std::vector<Job> jobs;
  const auto* done = std::get_if<Done>(&outcome);
  const auto* dead = std::get_if<Dead>(&outcome);
  if (done == nullptr && dead == nullptr) return jobs;
  const auto add = [&](Job made) {
    if (find_problem(made, Time())) made.content_type.clear();
    if (!find_problem(made, Time())) jobs.push_back(std::move(made));
  };
  if (!header_of(job, kOnDoneHeader).empty()) add(on_done_job(job, attempts, done, dead));
  if (!header_of(job, kReplyQueueHeader).empty()) add(reply_job(job, done, dead));
  return jobs;
}

}  // namespace bide::core
