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
#include "core/broker_answers.h"

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

Result<std::unique_ptr<DeadSet::Session>> DeadSet::browse(const std::string& queue, const Reader& reader) {
  std::map<JobId, std::uint32_t> same;  // Equal messages are told apart by their order.
  return browser_.browse(
      dialect_.dead_queue(queue), names_.visit(queue), [&](Session& session, Delivery delivery) {
        JobInfo info = dialect_.dead_info(delivery.message, delivery.key, queue);
        JobId& id = info.job.id;
        if (id.is_nil()) {
          std::string properties = delivery.key;
          for (const auto& [name, field] : delivery.message.headers) {
            properties += '|' + name;
            if (const std::string* text = field.text()) properties += '=' + *text;
          }
          id = id_by_content(properties, delivery.message.body);
          if (const std::uint32_t before = same[id]++; before > 0) {
            id = id_by_content(properties + '|' + std::to_string(before), delivery.message.body);
          }
        }
        if (board_ != nullptr && board_->is_cancelled(id, number(delivery.message, "bide-generation"))) {
          (void)session.remove(delivery.tag);
          return true;
        }
        return reader(session, std::move(delivery), std::move(info));
      });
}

// Several queues may share one of dead jobs.
std::vector<std::string> DeadSet::distinct(const std::vector<std::string>& queues) const {
  std::set<std::string> seen;
  std::vector<std::string> distinct;
  for (const std::string& queue : queues) {
    if (seen.insert(dialect_.dead_queue(queue)).second) distinct.push_back(queue);
  }
  return distinct;
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
  std::int64_t position = 0;
  for (const std::string& queue : distinct(queues)) {
    const auto browsed = browse(queue, [&](Session&, const Delivery& delivery, JobInfo info) {
      // Other systems write no time; later ones are behind.
      const std::int64_t dead_at = number(delivery.message, "bide-dead-at");
      Found found{{dead_at > 0 ? dead_at : ++position, info.job.id}, std::move(info)};
      if (!matches(found.info, filter) || (after && !after->newer_than(found.place))) return true;
      if (!filter.bodies) found.info.job.body = {};
      bytes += core::shown_bytes(found.info);
      ahead_.found.push_back(std::move(found));
      if (ahead_.found.size() < 2 * kMostAhead && bytes < 2 * kMostAheadBytes) return true;
      ahead_.cut = sort_and_cut(ahead_.found) || ahead_.cut;
      bytes = 0;
      return true;
    });
    if (!browsed) return browsed.error();
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
  for (const std::string& queue : distinct(queues)) {
    const auto browsed = browse(queue, [&](Session&, const Delivery&, JobInfo info) {
      if (info.job.id == id) found = std::move(info);
      return !found;
    });
    if (!browsed) return browsed.error();
    if (found) return std::move(*found);
  }
  return not_dead(id);
}

// Publishes them and takes those that are confirmed out of the dead set. In the order in which they were asked for.
void DeadSet::replay(Session& session, std::vector<Chosen> chosen, const ReplayOptions& options,
                     std::vector<Status>& statuses) {
  std::sort(chosen.begin(), chosen.end(), [](const Chosen& a, const Chosen& b) { return a.index < b.index; });
  std::vector<Publication> publications;
  std::vector<const Chosen*> published;
  for (Chosen& each : chosen) {
    Result<Publication> publication =
        dialect_.replay(std::move(each.delivery.message), each.delivery.key, each.queue, options);
    if (!publication) {
      statuses[each.index] = publication.error();
      continue;
    }
    if (publication->message.message_id.empty()) publication->message.message_id = each.id.to_string();
    publications.push_back(std::move(*publication));
    published.push_back(&each);
  }
  const auto confirmed = wait<std::vector<Status>>([&](auto done) {
    publisher_.publish(std::move(publications), [done](std::vector<Status> answers) { done(std::move(answers)); });
  });
  for (std::size_t i = 0; i < published.size(); ++i) {
    Status status = (*confirmed)[i];
    // Only now: a job is in two places for a moment, never in none.
    if (status) {
      status = session.remove(published[i]->delivery.tag);
      if (!status) status = unconfirmed(status.error());
    }
    statuses[published[i]->index] = std::move(status);
  }
}

// Calls `act` with those that are wanted, session by session and a bounded number at a time. An error: nothing was done.
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
  const auto run = [&](Session& session, std::vector<Chosen>& chosen) {
    std::vector<std::size_t> own_ids;  // Which no other message can have.
    for (const Chosen& each : chosen) {
      seen[each.index] = true;
      if (dialect_.ids_are_unique() && !is_unreadable(each.delivery.message)) own_ids.push_back(each.index);
    }
    action(session, std::exchange(chosen, {}), statuses);
    for (const std::size_t index : own_ids) {
      if (statuses[index]) gone.push_back(ids[index]);
    }
  };
  for (const std::string& queue : distinct(queues)) {
    std::vector<Chosen> chosen;
    std::size_t bytes = 0;
    const auto browsed = browse(queue, [&](Session& session, Delivery delivery, const JobInfo& info) {
      const auto found = wanted.find(info.job.id);
      if (found == wanted.end()) return true;
      bytes += delivery.message.body.size();
      chosen.push_back({found->second, queue, std::move(delivery), info.job.id});
      wanted.erase(found);
      if (chosen.size() >= kReplayedAtOnce || bytes >= kReplayedBytes) bytes = 0, run(session, chosen);
      return !wanted.empty();
    });
    if (!browsed) {
      const bool nothing_done = std::none_of(seen.begin(), seen.end(), [](bool one) { return one; });
      if (nothing_done) return browsed.error();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!seen[i]) statuses[i] = browsed.error();
      }
      break;
    }
    if (*browsed != nullptr) run(**browsed, chosen);
    if (wanted.empty()) break;
  }
  remove_left_over(queues, gone);
  return statuses;
}

Result<std::vector<Status>> DeadSet::replay(const std::vector<std::string>& queues, const std::vector<JobId>& ids,
                                            const ReplayOptions& options) {
  return act(queues, ids, [&](Session& session, std::vector<Chosen> chosen, std::vector<Status>& statuses) {
    replay(session, std::move(chosen), options, statuses);
  });
}

Result<std::vector<Status>> DeadSet::remove(const std::vector<std::string>& queues, const std::vector<JobId>& ids) {
  return act(queues, ids, [](Session& session, const std::vector<Chosen>& chosen, std::vector<Status>& statuses) {
    for (const Chosen& each : chosen) statuses[each.index] = session.remove(each.delivery.tag);
  });
}

void DeadSet::remove_left_over(const std::vector<std::string>& queues, const std::vector<JobId>& ids) {
  const std::set<JobId> gone(ids.begin(), ids.end());
  for (int again = 0; again < 3 && browser_.take_left_over() && !gone.empty(); ++again) {
    for (const std::string& queue : queues) {
      (void)browse(queue, [&](Session& session, const Delivery& delivery, const JobInfo& info) {
        if (gone.contains(info.job.id)) (void)session.remove(delivery.tag);
        return true;
      });
    }
  }
}

}  // namespace bide::brokers::rabbitmq
