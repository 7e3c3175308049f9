#include "brokers/rabbitmq/dead_set.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "bide/wait.h"
#include "brokers/rabbitmq/job_message.h"
#include "platform/clock.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr ChannelNumber kAsking = 1;
constexpr std::string_view kMarkerHeader = "bide-marker";
// So that a marker whose writer has died goes away by itself.
constexpr const char* kMarkerLife = "60000";
constexpr Milliseconds kGivingBack{2000};
constexpr std::uint32_t kAcksAtOnce = 16;
constexpr Milliseconds kKnockAgain{20};

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

void keep_newest(std::vector<Found>& all, std::size_t count) {
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.place.newer_than(b.place); });
  if (all.size() > count) all.resize(count);
}

// Not those that the server has given up because they were delivered too often: they would come back for ever.
bool has_lost_its_way(const AmqpMessage& message) {
  const Field* deaths = find_field(message.headers, "x-death");
  if (deaths == nullptr || deaths->list() == nullptr) return true;
  for (const Field& death : *deaths->list()) {
    const Field* reason = death.table() == nullptr ? nullptr : find_field(*death.table(), "reason");
    if (reason != nullptr && *reason == Field("delivery_limit")) return false;
  }
  return true;
}

Error not_dead(const JobId& id) { return {ErrorCode::kNotFound, "job " + id.to_string() + " is not in the dead set"}; }

}  // namespace

struct DeadSet::Visit {
  Visit(DeadSet& set, std::string name, std::string lock_name, ChannelNumber number)
      : owner(set), queue(std::move(name)), lock(std::move(lock_name)), channel(number) {}

  ~Visit() {
    Connection* const connection = owner.connection_.get();
    if (connection == nullptr || !connection->alive()) return;
    if (removed > 0) (void)pause();
    (void)connection->close_channel(channel);
    // The server gives back in its own time; whoever comes next must find everything.
    const steady_clock::time_point deadline = steady_clock::now() + kGivingBack;
    while (connection->alive() && steady_clock::now() < deadline) {
      const Result<QueueCounts> counts = connection->look_at_queue(kAsking, queue);
      owner.left_over_ = removed > 0 && counts && counts->messages > shown - removed;
      if (!counts || counts->messages >= shown - removed) break;
      platform::wait_ready({}, Milliseconds(2));
    }
    (void)connection->delete_queue(kAsking, lock, false, false);
    if (!connection->alive()) owner.connection_.reset();
  }

  Status remove(std::uint64_t tag) {
    if (owner.connection_ == nullptr) return Error{ErrorCode::kUnavailable, "the connection is lost"};
    if (Status sent = owner.connection_->ack(channel, tag, false); !sent) return sent;
    ++removed;
    if (removed % kAcksAtOnce != 0) return {};
    return pause();
  }

  // The server passes only so many acknowledgements on at once, and forgets the others when the channel is closed.
  Status pause() {
    const Result<QueueCounts> counts = owner.connection_->look_at_queue(channel, queue);
    if (!counts) return counts.error();
    platform::wait_ready({}, Milliseconds(2));
    return {};
  }

  DeadSet& owner;
  const std::string queue;  // By its name on the server.
  const std::string lock;
  const ChannelNumber channel;
  std::uint32_t shown = 0;
  std::uint32_t removed = 0;
};

DeadSet::DeadSet(const Settings& settings, Publisher& publisher, Stamps& stamps)
    : settings_(settings), names_(settings.prefix), publisher_(publisher), stamps_(stamps) {}

DeadSet::~DeadSet() = default;

Status DeadSet::connect() {
  // It may have been idle for so long that the server has given it up.
  if (connection_ != nullptr) {
    while (true) {
      const Result<std::optional<Event>> event = connection_->next_event();
      if (!event) connection_.reset();
      if (!event || !event->has_value()) break;
    }
  }
  if (connection_ != nullptr) return {};
  Result<std::unique_ptr<Connection>> opened = Connection::open(settings_, "inspector");
  if (!opened) return opened.error();
  connection_ = std::move(*opened);
  last_channel_ = kAsking;
  return connection_->open_channel(kAsking);
}

Result<QueueCounts> DeadSet::look_at(const std::string& queue) {
  if (Status connected = connect(); !connected) return connected.error();
  Result<QueueCounts> counts = connection_->look_at_queue(kAsking, queue);
  if (counts) return counts;
  if (counts.error().code != ErrorCode::kNotFound) {
    connection_.reset();
    return counts;
  }
  if (Status opened = connection_->open_channel(kAsking); !opened) {
    connection_.reset();
    return opened.error();
  }
  return QueueCounts{};
}

Result<std::uint32_t> DeadSet::purge(const std::string& queue) {
  if (Status connected = connect(); !connected) return connected.error();
  Result<std::uint32_t> purged = connection_->purge_queue(kAsking, queue);
  if (!purged) connection_.reset();
  return purged;
}

Status DeadSet::lock(const std::string& name) {
  const steady_clock::time_point deadline = steady_clock::now() + settings_.patience;
  while (true) {
    const Result<std::string> locked = connection_->declare_private_queue(kAsking, name);
    if (locked) return {};
    if (!connection_->alive() || locked.error().code != ErrorCode::kBusy) return locked.error();
    if (Status again = connection_->open_channel(kAsking); !again) return again;
    if (steady_clock::now() > deadline) {
      return Error{ErrorCode::kBusy, name + " is locked: somebody else is looking; try again"};
    }
    platform::wait_ready({}, kKnockAgain);
  }
}

Result<std::unique_ptr<DeadSet::Visit>> DeadSet::visit(const std::string& queue, const Visitor& visitor) {
  return visit(names_.dead(queue), names_.visit(queue), visitor);
}

Result<std::unique_ptr<DeadSet::Visit>> DeadSet::visit(const std::string& name, const std::string& lock_name,
                                                       const Visitor& visitor) {
  if (Status connected = connect(); !connected) return connected.error();
  const auto fail = [&](Error error) -> Result<std::unique_ptr<Visit>> {
    connection_.reset();
    return error;
  };
  if (const auto there = connection_->look_at_queue(kAsking, name); !there) {
    if (there.error().code != ErrorCode::kNotFound) return fail(there.error());
    if (Status again = connection_->open_channel(kAsking); !again) return fail(again.error());
    return std::unique_ptr<Visit>();
  }
  if (Status locked = lock(lock_name); !locked) return fail(locked.error());
  const ChannelNumber channel = ++last_channel_ > 1000 ? last_channel_ = kAsking + 1 : last_channel_;
  if (Status opened = connection_->open_channel(channel); !opened) return fail(opened.error());
  auto visit = std::make_unique<Visit>(*this, name, lock_name, channel);
  ConsumeOptions options;
  options.queue = name;
  options.tag = "bide-visit";
  if (Status consuming = connection_->consume(channel, options); !consuming) return fail(consuming.error());
  AmqpMessage marker;
  marker.message_id = "marker-" + std::to_string(stamps_.next());
  marker.expiration = kMarkerLife;
  marker.headers = {{std::string(kMarkerHeader), marker.message_id}};
  if (Status sent = connection_->publish(channel, "", name, marker, true); !sent) return fail(sent.error());

  steady_clock::time_point deadline = steady_clock::now() + settings_.patience;
  while (steady_clock::now() < deadline) {
    Result<std::optional<Event>> event = connection_->next_event();
    if (!event) return fail(event.error());
    if (!event->has_value()) {
      std::array<platform::Readiness, 1> ready = {platform::Readiness{connection_->descriptor(), true, false}};
      platform::wait_ready(ready, Milliseconds(100));
      continue;
    }
    if (const ChannelClosed* closed = std::get_if<ChannelClosed>(&**event)) return fail(closed->error);
    Delivery* delivery = std::get_if<Delivery>(&**event);
    if (delivery == nullptr || delivery->channel != channel) continue;
    deadline = steady_clock::now() + settings_.patience;
    if (const Field* mark = find_field(delivery->message.headers, kMarkerHeader)) {
      if (mark->text() == nullptr || *mark->text() != marker.message_id) continue;  // Somebody else's.
      if (Status gone = connection_->ack(channel, delivery->tag, false); !gone) return fail(gone.error());
      return visit;
    }
    visit->shown += 1;
    visitor(delivery->tag, std::move(delivery->message));
  }
  return fail({ErrorCode::kUnavailable, "the server does not show what is in " + name});
}

Result<JobPage> DeadSet::list(const std::vector<std::string>& queues, const JobFilter& filter,
                              const std::string& cursor, std::size_t limit) {
  std::optional<Place> after;
  if (!cursor.empty()) {
    after = Place::parse(cursor);
    if (!after) return Error{ErrorCode::kInvalidArgument, "the cursor is not one of a page before"};
  }
  std::vector<Found> newest;
  for (const std::string& queue : queues) {
    const auto visited = visit(queue, [&](std::uint64_t, AmqpMessage message) {
      Found found{{dead_at(message), {}}, dead_info(message, queue)};
      found.place.id = found.info.job.id;
      if (!matches(found.info, filter) || (after && !after->newer_than(found.place))) return;
      newest.push_back(std::move(found));
      if (newest.size() >= 4 * limit + 64) keep_newest(newest, limit + 1);
    });
    if (!visited) return visited.error();
  }
  keep_newest(newest, limit + 1);
  JobPage page;
  if (newest.size() > limit) {
    newest.pop_back();
    if (!newest.empty()) page.next = newest.back().place.to_text();
  }
  for (Found& found : newest) page.jobs.push_back(std::move(found.info));
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
    Visit* visit = nullptr;
    std::uint64_t tag = 0;
    std::string queue;
    AmqpMessage message;
  };
  std::map<JobId, std::optional<Dead>> wanted;
  for (const JobId& id : ids) wanted.emplace(id, std::nullopt);
  std::vector<std::unique_ptr<Visit>> visits;
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
    if (status) status = found[i].second.visit->remove(found[i].second.tag);
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
  for (int again = 0; again < 3 && std::exchange(left_over_, false); ++again) {
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

Result<std::size_t> DeadSet::bring_back(const std::string& queue) {
  const Result<QueueCounts> lost = look_at(names_.lost());
  if (!lost) return lost.error();
  if (lost->messages == 0) return std::size_t{0};
  std::vector<std::pair<std::uint64_t, Publication>> found;
  const auto visited = visit(names_.lost(), names_.visit(".lost"), [&](std::uint64_t tag, AmqpMessage message) {
    const Field* home = find_field(message.headers, "bide-queue");
    if (home == nullptr || home->text() == nullptr || *home->text() != queue || !has_lost_its_way(message)) return;
    Result<JobMessage> job = decode(std::move(message), queue);
    if (!job) return;
    const std::int64_t now_us = platform::real_clock().now().wall_us;
    const Time now(std::chrono::floor<Milliseconds>(std::chrono::microseconds(now_us)));
    Publication publication;
    publication.to.kind = Destination::Kind::kReady;
    publication.to.name = queue;
    // Delays that were interrupted by the loss of a queue on their way go on.
    if (job->due && *job->due > now) publication.to.delay = *job->due - now;
    publication.message = encode(std::move(*job));
    found.emplace_back(tag, std::move(publication));
  });
  if (!visited) return visited.error();
  std::size_t brought = 0;
  for (auto& each : found) {
    const Status published = wait<void>([&](const Completion<void>& done) {
      each.second.done = done;
      std::vector<Publication> one;
      one.push_back(std::move(each.second));
      publisher_.publish(std::move(one));
    });
    if (published && (*visited)->remove(each.first)) ++brought;
  }
  return brought;
}

Result<std::vector<Status>> DeadSet::remove(const std::vector<std::string>& queues, const std::vector<JobId>& ids) {
  std::map<JobId, bool> wanted;
  for (const JobId& id : ids) wanted.emplace(id, false);
  for (const std::string& queue : queues) {
    std::vector<std::uint64_t> tags;
    const auto visited = visit(queue, [&](std::uint64_t tag, const AmqpMessage& message) {
      const auto found = wanted.find(dead_info(message, queue).job.id);
      if (found == wanted.end()) return;
      found->second = true;
      tags.push_back(tag);
    });
    if (!visited) return visited.error();
    for (const std::uint64_t tag : tags) {
      if (Status removed = (*visited)->remove(tag); !removed) return removed.error();
    }
  }
  remove_left_over(queues, ids);
  std::vector<Status> statuses;
  for (const JobId& id : ids) {
    bool& there = wanted[id];
    statuses.push_back(there ? Status() : Status(not_dead(id)));
    there = false;  // Named twice, it is there once.
  }
  return statuses;
}

}  // namespace bide::brokers::rabbitmq
