#include "brokers/rabbitmq/dead_set.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "bide/wait.h"
#include "brokers/rabbitmq/job_message.h"
#include "core/job_bytes.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

std::int64_t number(const AmqpMessage& message, std::string_view header) {
  const Field* field = find_field(message.headers, header);
  return field != nullptr && field->number() != nullptr ? *field->number() : 0;
}

bool matches(const JobInfo& info, const JobFilter& filter) {
  if (!filter.queue.empty() && info.job.queue != filter.queue) return false;
  if (!filter.kind.empty() && info.job.kind != filter.kind) return false;
  if (!filter.error.empty()) {
    if (info.history.empty() || info.history.back().text.find(filter.error) == std::string::npos) return false;
  }
  if (filter.since && (!info.finished || *info.finished < *filter.since)) return false;
  return !filter.until || (info.finished && *info.finished <= *filter.until);
}

bool is_unreadable(const AmqpMessage& message) { return find_field(message.headers, "bide-unreadable") != nullptr; }

// One scan reads everything; so it keeps more than one page, for the calls that follow, but not without limit.
constexpr std::size_t kMostAhead = 20'000;
constexpr std::size_t kMostAheadBytes = 8 * JobPage::kMostBytes;
constexpr std::chrono::seconds kAheadLives{10};
// So much is published at once by a replay.
constexpr std::size_t kReplayedAtOnce = 1000;
constexpr std::size_t kReplayedBytes = 16 * 1024 * 1024;

bool same(const JobFilter& a, const JobFilter& b) {
  return a.queue == b.queue && a.kind == b.kind && a.error == b.error && a.since == b.since && a.until == b.until &&
         a.bodies == b.bodies;
}

Error not_dead(const JobId& id) { return {ErrorCode::kNotFound, "job " + id.to_string() + " is not in the dead set"}; }

}  // namespace

bool DeadSet::Place::newer_than(const Place& other) const {
  return std::tie(dead_at, id) > std::tie(other.dead_at, other.id);
}
std::string DeadSet::Place::to_text() const { return std::to_string(dead_at) + "." + id.to_string(); }
std::optional<DeadSet::Place> DeadSet::Place::parse(std::string_view text) {
  Place place;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + dot, place.dead_at);
  const Result<JobId> id = JobId::parse(text.substr(dot + 1));
  if (error != std::errc() || end != text.data() + dot || !id) return std::nullopt;
  place.id = *id;
  return place;
}

DeadSet::DeadSet(const Settings& settings, Visits& visits, Publisher& publisher, Stamps& stamps)
    : names_(settings.prefix), visits_(visits), publisher_(publisher), stamps_(stamps) {}

Result<std::unique_ptr<Visits::Visit>> DeadSet::visit(const std::string& queue, const Visits::Visitor& visitor) {
  return visits_.visit(names_.dead(queue), names_.visit(queue),
                       [&](Visits::Visit& visit, std::uint64_t tag, AmqpMessage message) {
                         const Result<JobId> id = JobId::parse(message.message_id);
                         if (board_ != nullptr && id && board_->is_cancelled(*id, number(message, "bide-generation"))) {
                           (void)visit.remove(tag);
                           return true;
                         }
                         return visitor(visit, tag, std::move(message));
                       });
}

// Newest first; those that do not fit are forgotten. True: there were some.
bool DeadSet::sort_and_cut(std::vector<Found>& found) {
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.place.newer_than(b.place); });
  std::size_t bytes = 0;
  std::size_t kept = 0;
  while (kept < found.size() && kept < kMostAhead && bytes < kMostAheadBytes) {
    bytes += core::shown_bytes(found[kept++].info);
  }
  const bool cut = kept < found.size();
  found.resize(kept);
  return cut;
}

Status DeadSet::scan(const std::vector<std::string>& queues, const JobFilter& filter, const std::optional<Place>& after) {
  ahead_ = {};
  std::size_t bytes = 0;  // Since the last cut.
  for (const std::string& queue : queues) {
    const auto visited = visit(queue, [&](auto&, std::uint64_t, const AmqpMessage& message) {
      Found found{{number(message, "bide-dead-at"), {}}, dead_info(message, queue)};
      found.place.id = found.info.job.id;
      if (!matches(found.info, filter) || (after && !after->newer_than(found.place))) return true;
      if (!filter.bodies) found.info.job.body = {};
      bytes += core::shown_bytes(found.info);
      ahead_.found.push_back(std::move(found));
      if (ahead_.found.size() < 2 * kMostAhead && bytes < 2 * kMostAheadBytes) return true;
      ahead_.cut = sort_and_cut(ahead_.found) || ahead_.cut;
      bytes = 0;
      return true;
    });
    if (!visited) return visited.error();
  }
  ahead_.cut = sort_and_cut(ahead_.found) || ahead_.cut;
  ahead_.queues = queues;
  ahead_.filter = filter;
  return {};
}

Result<JobPage> DeadSet::list(const std::vector<std::string>& queues, const JobFilter& filter,
                              const std::string& cursor, std::size_t limit) {
  std::optional<Place> after;
  if (!cursor.empty()) {
    after = Place::parse(cursor);
    if (!after) return Error{ErrorCode::kInvalidArgument, "the cursor is not one of a page before"};
  }
  const bool goes_on = !cursor.empty() && cursor == ahead_.cursor && queues == ahead_.queues &&
                       same(filter, ahead_.filter) && std::chrono::steady_clock::now() < ahead_.until;
  if (!goes_on) {
    if (Status scanned = scan(queues, filter, after); !scanned) return scanned.error();
  }
  JobPage page;
  std::size_t bytes = 0;
  std::size_t taken = 0;
  while (taken < ahead_.found.size() && taken < limit && bytes < JobPage::kMostBytes) {
    Found& found = ahead_.found[taken++];
    bytes += core::shown_bytes(found.info);
    page.next = found.place.to_text();
    page.jobs.push_back(std::move(found.info));
  }
  ahead_.found.erase(ahead_.found.begin(), ahead_.found.begin() + static_cast<std::ptrdiff_t>(taken));
  if (ahead_.found.empty() && !ahead_.cut) page.next.clear();
  ahead_.cursor = ahead_.found.empty() ? "" : page.next;
  ahead_.until = std::chrono::steady_clock::now() + kAheadLives;
  return page;
}

Result<JobInfo> DeadSet::find(const std::vector<std::string>& queues, JobId id) {
  std::optional<JobInfo> found;
  for (const std::string& queue : queues) {
    const auto visited = visit(queue, [&](auto&, std::uint64_t, const AmqpMessage& message) {
      JobInfo info = dead_info(message, queue);
      if (info.job.id == id) found = std::move(info);
      return !found;
    });
    if (!visited) return visited.error();
    if (found) return std::move(*found);
  }
  return not_dead(id);
}

Publication DeadSet::replayed(AmqpMessage message, const std::string& queue, const ReplayOptions& options) {
  Publication publication;
  publication.to = {.kind = Destination::Kind::kReady, .name = queue, .key = {}, .delay = options.delay};
  publication.bounded = true;
  strip_travel_headers(message.headers);
  const bool readable = !is_unreadable(message);
  Result<JobMessage> decoded = readable ? decode(message, queue) : Result<JobMessage>(Error{});
  if (!decoded) {
    // As it came; perhaps somebody has taught the workers to read it.
    std::erase_if(message.headers, [](const auto& entry) { return entry.first.starts_with("bide-"); });
    message.expiration.clear();
    publication.message = std::move(message);
    return publication;
  }
  const std::int64_t now_us = platform::real_clock().now().wall_us;
  const Time now(std::chrono::floor<Milliseconds>(std::chrono::microseconds(now_us)));
  JobMessage job = std::move(*decoded);
  // A new life: what was cancelled before it is not cancelled now.
  job.generation = job.published = stamps_.next();
  job.dead.reset();
  job.dead_at = 0;
  job.note.clear();
  job.due_by_wall_clock = false;
  job.due.reset();
  if (options.delay > Milliseconds(0)) job.due = now + Milliseconds(1) + options.delay;
  if (job.job.expires && *job.job.expires <= now + options.delay) job.job.expires.reset();
  if (!options.keep_attempts) {
    job.counts = {};
    job.history.clear();
  }
  publication.message = encode(std::move(job));
  return publication;
}

// Publishes them and takes those that are confirmed out of the dead set. In the order in which they were asked for.
void DeadSet::replay(Visits::Visit& visit, std::vector<Chosen> chosen, const ReplayOptions& options,
                     std::vector<Status>& statuses) {
  if (chosen.empty()) return;
  std::sort(chosen.begin(), chosen.end(), [](const Chosen& a, const Chosen& b) { return a.index < b.index; });
  using Answers = std::vector<Status>;
  const Result<Answers> published = wait<Answers>([&](Completion<Answers> done) {
    struct Batch {
      Answers answers;
      std::size_t missing;
      Completion<Answers> done;
    };
    auto batch = std::make_shared<Batch>(Batch{Answers(chosen.size()), chosen.size(), std::move(done)});
    std::vector<Publication> publications;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      Publication publication = replayed(std::move(chosen[i].message), chosen[i].queue, options);
      publication.done = [batch, i](Status status) {
        batch->answers[i] = std::move(status);
        if (--batch->missing == 0) batch->done(std::move(batch->answers));
      };
      publications.push_back(std::move(publication));
    }
    publisher_.publish(std::move(publications));
  });
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Status status = (*published)[i];
    // Only now: a job is in two places for a moment, never in none.
    if (status) status = visit.remove(chosen[i].tag);
    if (!status && (*published)[i]) status = unconfirmed(status.error());
    statuses[chosen[i].index] = std::move(status);
  }
}

// Calls `act` with those that are wanted, visit by visit and a bounded number at a time. An error: nothing was done.
// When it was interrupted later, those that were not seen have that error.
Result<std::vector<Status>> DeadSet::act(const std::vector<std::string>& queues, const std::vector<JobId>& ids,
                                         const Action& action) {
  std::vector<Status> statuses;
  std::multimap<JobId, std::size_t> wanted;  // Each is done once, and so often as it was named.
  for (std::size_t i = 0; i < ids.size(); ++i) {
    statuses.push_back(not_dead(ids[i]));
    wanted.emplace(ids[i], i);
  }
  ahead_ = {};
  std::vector<JobId> gone;
  std::vector<bool> seen(ids.size());
  const auto run = [&](Visits::Visit& visit, std::vector<Chosen>& chosen) {
    for (const Chosen& each : chosen) seen[each.index] = true;
    std::vector<Chosen> now = std::exchange(chosen, {});
    std::vector<std::pair<std::size_t, bool>> indexes;
    for (const Chosen& each : now) indexes.emplace_back(each.index, is_unreadable(each.message));
    action(visit, std::move(now), statuses);
    for (const auto& [index, unreadable] : indexes) {
      if (statuses[index] && !unreadable) gone.push_back(ids[index]);
    }
  };
  for (const std::string& queue : queues) {
    std::vector<Chosen> chosen;
    std::size_t bytes = 0;
    const auto visited = visit(queue, [&](Visits::Visit& visit, std::uint64_t tag, AmqpMessage message) {
      const auto found = wanted.find(dead_info(message, queue).job.id);
      if (found == wanted.end()) return true;
      bytes += message.body.size();
      chosen.push_back({found->second, tag, queue, std::move(message)});
      wanted.erase(found);
      if (chosen.size() >= kReplayedAtOnce || bytes >= kReplayedBytes) bytes = 0, run(visit, chosen);
      return !wanted.empty();
    });
    if (!visited) {
      const bool nothing_done = std::none_of(seen.begin(), seen.end(), [](bool one) { return one; });
      if (nothing_done) return visited.error();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!seen[i]) statuses[i] = visited.error();
      }
      break;
    }
    if (*visited != nullptr) run(**visited, chosen);
    if (wanted.empty()) break;
  }
  remove_left_over(queues, gone);
  return statuses;
}

Result<std::vector<Status>> DeadSet::replay(const std::vector<std::string>& queues, const std::vector<JobId>& ids,
                                            const ReplayOptions& options) {
  return act(queues, ids, [&](Visits::Visit& visit, std::vector<Chosen> chosen, std::vector<Status>& statuses) {
    replay(visit, std::move(chosen), options, statuses);
  });
}

Result<std::vector<Status>> DeadSet::remove(const std::vector<std::string>& queues, const std::vector<JobId>& ids) {
  return act(queues, ids, [](Visits::Visit& visit, const std::vector<Chosen>& chosen, std::vector<Status>& statuses) {
    for (const Chosen& each : chosen) statuses[each.index] = visit.remove(each.tag);
  });
}

void DeadSet::remove_left_over(const std::vector<std::string>& queues, const std::vector<JobId>& ids) {
  const std::set<JobId> gone(ids.begin(), ids.end());
  for (int again = 0; again < 3 && visits_.take_left_over() && !gone.empty(); ++again) {
    for (const std::string& queue : queues) {
      (void)visit(queue, [&](Visits::Visit& visit, std::uint64_t tag, const AmqpMessage& message) {
        if (gone.contains(dead_info(message, queue).job.id)) (void)visit.remove(tag);
        return true;
      });
    }
  }
}

}  // namespace bide::brokers::rabbitmq
