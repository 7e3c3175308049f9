#include "brokers/rabbitmq/dead_set.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "bide/wait.h"
#include "brokers/rabbitmq/job_message.h"
#include "core/job_bytes.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

// The order of a list, newest first; the cursor is the place of the last one of a page.
struct Place {
  std::int64_t dead_at = 0;
  JobId id = {};

  bool newer_than(const Place& other) const { return std::tie(dead_at, id) > std::tie(other.dead_at, other.id); }
  std::string to_text() const { return std::to_string(dead_at) + "." + id.to_string(); }
  static std::optional<Place> parse(std::string_view text) {
    Place place;
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + dot, place.dead_at);
    const Result<JobId> id = JobId::parse(text.substr(dot + 1));
    if (error != std::errc() || end != text.data() + dot || !id) return std::nullopt;
    place.id = *id;
    return place;
  }
};

struct Found {
  Place place;
  JobInfo info;
};

std::int64_t dead_at(const AmqpMessage& message) {
  const Field* field = find_field(message.headers, "bide-dead-at");
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

// What a page shows, and one more if there is one.
void keep_page(std::vector<Found>& all, std::size_t limit) {
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.place.newer_than(b.place); });
  std::size_t bytes = 0;
  std::size_t kept = 0;
  while (kept < all.size() && kept < limit && bytes < JobPage::kMostBytes) bytes += core::shown_bytes(all[kept++].info);
  if (all.size() > kept + 1) all.resize(kept + 1);
}

Error not_dead(const JobId& id) { return {ErrorCode::kNotFound, "job " + id.to_string() + " is not in the dead set"}; }

}  // namespace

DeadSet::DeadSet(const Settings& settings, Visits& visits, Publisher& publisher, Stamps& stamps)
    : names_(settings.prefix), visits_(visits), publisher_(publisher), stamps_(stamps) {}

Result<std::unique_ptr<Visits::Visit>> DeadSet::visit(const std::string& queue, const Visits::Visitor& visitor) {
  return visits_.visit(names_.dead(queue), names_.visit(queue), visitor);
}

Result<JobPage> DeadSet::list(const std::vector<std::string>& queues, const JobFilter& filter,
                              const std::string& cursor, std::size_t limit) {
  std::optional<Place> after;
  if (!cursor.empty()) {
    after = Place::parse(cursor);
    if (!after) return Error{ErrorCode::kInvalidArgument, "the cursor is not one of a page before"};
  }
  std::vector<Found> newest;
  std::size_t bytes = 0;  // Since it was cut to a page.
  for (const std::string& queue : queues) {
    const auto visited = visit(queue, [&](std::uint64_t, AmqpMessage message) {
      Found found{{dead_at(message), {}}, dead_info(message, queue)};
      found.place.id = found.info.job.id;
      if (!matches(found.info, filter) || (after && !after->newer_than(found.place))) return;
      if (!filter.bodies) found.info.job.body = {};
      bytes += core::shown_bytes(found.info);
      newest.push_back(std::move(found));
      if (newest.size() < 4 * limit + 64 && bytes < 4 * JobPage::kMostBytes) return;
      keep_page(newest, limit);
      bytes = 0;
    });
    if (!visited) return visited.error();
  }
  keep_page(newest, limit);
  JobPage page;
  std::size_t page_bytes = 0;
  for (Found& found : newest) {
    if (page.jobs.size() == limit || page_bytes >= JobPage::kMostBytes) break;
    page_bytes += core::shown_bytes(found.info);
    page.next = found.place.to_text();
    page.jobs.push_back(std::move(found.info));
  }
  if (page.jobs.size() == newest.size()) page.next.clear();
  return page;
}

Result<JobInfo> DeadSet::find(const std::vector<std::string>& queues, JobId id) {
  std::optional<JobInfo> found;
  for (const std::string& queue : queues) {
    const auto visited = visit(queue, [&](std::uint64_t, AmqpMessage message) {
      JobInfo info = dead_info(message, queue);
      if (info.job.id == id) found = std::move(info);
    });
    if (!visited) return visited.error();
    if (found) return std::move(*found);
  }
  return not_dead(id);
}

Publication DeadSet::replayed(AmqpMessage message, const std::string& queue, const ReplayOptions& options) {
  Publication publication;
  publication.to = {.kind = Destination::Kind::kReady, .name = queue, .key = {}, .delay = options.delay};
  strip_travel_headers(message.headers);
  const bool readable = find_field(message.headers, "bide-unreadable") == nullptr;
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

Result<std::vector<Status>> DeadSet::replay(const std::vector<std::string>& queues, const std::vector<JobId>& ids,
                                            const ReplayOptions& options) {
  struct Dead {
    Visits::Visit* visit = nullptr;
    std::uint64_t tag = 0;
    std::string queue;
    AmqpMessage message;
  };
  std::map<JobId, std::optional<Dead>> wanted;
  for (const JobId& id : ids) wanted.emplace(id, std::nullopt);
  std::vector<std::unique_ptr<Visits::Visit>> visits;
  for (const std::string& queue : queues) {
    std::vector<Dead*> here;
    auto visited = visit(queue, [&](std::uint64_t tag, AmqpMessage message) {
      const auto found = wanted.find(dead_info(message, queue).job.id);
      if (found == wanted.end() || found->second) return;
      found->second = Dead{nullptr, tag, queue, std::move(message)};
      here.push_back(&*found->second);
    });
    if (!visited) return visited.error();
    for (Dead* dead : here) dead->visit = visited->get();
    if (*visited != nullptr) visits.push_back(std::move(*visited));
  }

  std::vector<Status> statuses(ids.size());
  std::vector<std::pair<std::size_t, Dead>> found;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::optional<Dead>& dead = wanted[ids[i]];
    if (!dead) {
      statuses[i] = not_dead(ids[i]);
      continue;
    }
    found.emplace_back(i, std::move(*dead));
    dead.reset();
  }
  if (found.empty()) return statuses;
  using Answers = std::vector<Status>;
  const Result<Answers> published = wait<Answers>([&](Completion<Answers> done) {
    struct Batch {
      Answers answers;
      std::size_t missing;
      Completion<Answers> done;
    };
    auto batch = std::make_shared<Batch>(Batch{Answers(found.size()), found.size(), std::move(done)});
    std::vector<Publication> publications;
    for (std::size_t i = 0; i < found.size(); ++i) {
      Dead& dead = found[i].second;
      Publication publication = replayed(std::move(dead.message), dead.queue, options);
      publication.done = [batch, i](Status status) {
        batch->answers[i] = std::move(status);
        if (--batch->missing == 0) batch->done(std::move(batch->answers));
      };
      publications.push_back(std::move(publication));
    }
    publisher_.publish(std::move(publications));
  });
  for (std::size_t i = 0; i < found.size(); ++i) {
    Status status = (*published)[i];
    // Only now: a job is in two places for a moment, never in none.
    if (status) {
      status = found[i].second.visit->remove(found[i].second.tag);
      if (!status) status = unconfirmed(status.error());
    }
    statuses[found[i].first] = std::move(status);
  }
  visits.clear();
  std::vector<JobId> gone;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (statuses[i]) gone.push_back(ids[i]);
  }
  remove_left_over(queues, gone);
  return statuses;
}

void DeadSet::remove_left_over(const std::vector<std::string>& queues, const std::vector<JobId>& ids) {
  for (int again = 0; again < 3 && visits_.take_left_over(); ++again) {
    for (const std::string& queue : queues) {
      std::vector<std::uint64_t> tags;
      const auto visited = visit(queue, [&](std::uint64_t tag, const AmqpMessage& message) {
        const JobId id = dead_info(message, queue).job.id;
        if (std::find(ids.begin(), ids.end(), id) != ids.end()) tags.push_back(tag);
      });
      if (!visited || *visited == nullptr) continue;
      for (const std::uint64_t tag : tags) (void)(*visited)->remove(tag);
    }
  }
}

Result<std::vector<Status>> DeadSet::remove(const std::vector<std::string>& queues, const std::vector<JobId>& ids) {
  std::map<JobId, Status> wanted;
  for (const JobId& id : ids) wanted.emplace(id, not_dead(id));
  Status trouble;  // From here on nobody could look.
  bool changed = false;
  for (const std::string& queue : queues) {
    std::vector<std::pair<std::uint64_t, Status*>> found_here;
    const auto visited = visit(queue, [&](std::uint64_t tag, const AmqpMessage& message) {
      const auto found = wanted.find(dead_info(message, queue).job.id);
      if (found != wanted.end()) found_here.emplace_back(tag, &found->second);
    });
    if (!visited) {
      trouble = visited.error();
      break;
    }
    for (auto& [tag, status] : found_here) {
      *status = (*visited)->remove(tag);
      changed = true;
    }
  }
  if (!trouble && !changed) return trouble.error();
  remove_left_over(queues, ids);
  std::vector<Status> statuses;
  for (const JobId& id : ids) {
    Status& status = wanted.find(id)->second;
    const bool not_seen = !status && status.error().code == ErrorCode::kNotFound;
    statuses.push_back(not_seen && !trouble ? trouble : status);
    status = not_dead(id);  // Named twice, it is there once.
  }
  return statuses;
}

}  // namespace bide::brokers::rabbitmq
