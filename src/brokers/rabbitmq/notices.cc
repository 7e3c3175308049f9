#include "brokers/rabbitmq/notices.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace bide::brokers::rabbitmq {

namespace {

using Kind = Notice::Kind;

// In the order of Notice::Kind.
constexpr std::array<std::string_view, 10> kWords = {"cancel", "put-off", "purge", "pause", "resume",
                                                     "queue",  "lost",    "spare", "over",  "marker"};

bool is_interruption(Kind kind) { return kind == Kind::kLost || kind == Kind::kSpare; }
bool is_about_a_copy(Kind kind) { return is_interruption(kind) || kind == Kind::kOver; }
bool is_about_a_job(Kind kind) { return kind == Kind::kCancel || kind == Kind::kPutOff || is_about_a_copy(kind); }

std::string_view next_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string Notice::to_text() const {
  std::string text(kWords[static_cast<std::size_t>(kind)]);
  text += ' ';
  text += is_about_a_job(kind) ? id.to_string() : name;
  if (kind != Kind::kMarker) text += ' ' + std::to_string(stamp);
  if (kind == Kind::kPutOff) text += ' ' + std::to_string(due.time_since_epoch().count());
  if (is_about_a_copy(kind)) text += ' ' + std::to_string(published);
  return text;
}

std::optional<Notice> Notice::parse(std::string_view text) {
  const auto word = std::find(kWords.begin(), kWords.end(), next_word(text));
  if (word == kWords.end()) return std::nullopt;
  Notice notice;
  notice.kind = static_cast<Kind>(word - kWords.begin());
  const std::string_view subject = next_word(text);
  if (subject.empty()) return std::nullopt;
  if (is_about_a_job(notice.kind)) {
    const Result<JobId> id = JobId::parse(subject);
    if (!id) return std::nullopt;
    notice.id = *id;
  } else {
    notice.name = subject;
  }
  if (notice.kind == Kind::kMarker) return notice;
  const std::optional<std::int64_t> stamp = number(next_word(text));
  if (!stamp) return std::nullopt;
  notice.stamp = *stamp;
  if (notice.kind == Kind::kPutOff || is_about_a_copy(notice.kind)) {
    const std::optional<std::int64_t> last = number(next_word(text));
    if (!last) return std::nullopt;
    if (notice.kind == Kind::kPutOff) notice.due = Time(Milliseconds(*last));
    if (is_about_a_copy(notice.kind)) notice.published = *last;
  }
  return notice;
}

std::vector<Notice> Notice::parse_lines(std::string_view text) {
  std::vector<Notice> notices;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (std::optional<Notice> notice = parse(text.substr(0, end))) notices.push_back(std::move(*notice));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return notices;
}

void NoticeBoard::add(const Notice& notice) {
  if (is_about_a_job(notice.kind)) {
    AboutJob& job = jobs_[notice.id];
    job.newest = std::max(job.newest, notice.stamp);
    if (notice.kind == Kind::kCancel) job.cancelled = std::max(job.cancelled, notice.stamp);
    // Notices come once from the log and once from the notice queue; the stamp tells them apart.
    if (is_interruption(notice.kind) && notice.stamp > job.last_interruption) {
      job.last_interruption = notice.stamp;
      if (std::exchange(job.interrupted, notice.published) != notice.published) job.lost = job.spared = 0;
      (notice.kind == Kind::kLost ? job.lost : job.spared) += 1;
    }
    if (notice.kind == Kind::kOver && std::find(job.over.begin(), job.over.end(), notice.published) == job.over.end()) {
      job.over.push_back(notice.published);
    }
    if (notice.kind == Kind::kPutOff && notice.stamp >= job.put_off) {
      job.put_off = notice.stamp;
      job.due = notice.due;
    }
    return;
  }
  if (notice.kind == Kind::kMarker) return;
  AboutQueue& queue = queues_[notice.name];
  std::int64_t* const field = notice.kind == Kind::kPurge    ? &queue.purged
                              : notice.kind == Kind::kPause  ? &queue.paused
                              : notice.kind == Kind::kResume ? &queue.resumed
                                                             : &queue.named;
  *field = std::max(*field, notice.stamp);
}

bool NoticeBoard::is_cancelled(const JobId& id, std::int64_t generation) const {
  const auto found = jobs_.find(id);
  return found != jobs_.end() && found->second.cancelled > 0 && found->second.cancelled >= generation;
}

std::optional<Time> NoticeBoard::put_off_until(const JobId& id, std::int64_t generation) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.put_off == 0 || found->second.put_off < generation) return std::nullopt;
  return found->second.due;
}

bool NoticeBoard::is_purged(const std::string& queue, std::int64_t published) const {
  const auto found = queues_.find(queue);
  return found != queues_.end() && found->second.purged > 0 && found->second.purged >= published;
}

bool NoticeBoard::is_paused(const std::string& queue) const {
  const auto found = queues_.find(queue);
  return found != queues_.end() && found->second.paused > found->second.resumed;
}

bool NoticeBoard::is_over(const JobId& id, std::int64_t published) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return false;
  const std::vector<std::int64_t>& over = found->second.over;
  return std::find(over.begin(), over.end(), published) != over.end();
}

std::uint32_t NoticeBoard::lost(const JobId& id, std::int64_t published) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() || found->second.interrupted != published ? 0 : found->second.lost;
}

std::uint32_t NoticeBoard::spared(const JobId& id, std::int64_t published) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() || found->second.interrupted != published ? 0 : found->second.spared;
}

std::set<std::string> NoticeBoard::queues() const {
  std::set<std::string> names;
  for (const auto& [name, about] : queues_) names.insert(name);
  return names;
}

std::vector<Notice> NoticeBoard::pauses_before(std::int64_t stamp) const {
  std::vector<Notice> pauses;
  for (const auto& [name, queue] : queues_) {
    if (queue.paused <= queue.resumed || queue.paused >= stamp) continue;
    pauses.push_back({.kind = Kind::kPause, .id = {}, .name = name, .stamp = queue.paused});
  }
  return pauses;
}

std::size_t NoticeBoard::size() const { return jobs_.size() + queues_.size(); }

void NoticeBoard::forget_before(std::int64_t stamp) {
  std::erase_if(jobs_, [stamp](const auto& entry) { return entry.second.newest < stamp; });
}

}  // namespace bide::brokers::rabbitmq
