#include "brokers/rabbitmq/compat/foreign_dead.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "core/job_bytes.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

using std::chrono::steady_clock;

constexpr ChannelNumber kVisiting = 1;
constexpr std::size_t kMostVisited = 100'000;

// FNV-1a.
std::uint64_t hash(std::uint64_t state, std::string_view bytes) {
  for (const char c : bytes) state = (state ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  return state;
}

// Of version 8: made by rules of our own. Equal messages are told apart by their order.
JobId id_by_content(const Delivery& delivery, std::uint32_t same_before) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (int half = 0; half < 2; ++half) {
    std::uint64_t state = 0xcbf29ce484222325 + static_cast<std::uint64_t>(half);
    state = hash(state, delivery.message.body);
    state = hash(state, delivery.key);
    for (const auto& [name, field] : delivery.message.headers) {
      state = hash(state, name);
      if (const std::string* text = field.text()) state = hash(state, *text);
    }
    state = hash(state, std::to_string(same_before));
    for (std::size_t i = 0; i < 8; ++i) {
      bytes[static_cast<std::size_t>(half) * 8 + i] = static_cast<std::uint8_t>(state >> (8 * i));
    }
  }
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x80);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  return JobId(bytes);
}

// The answer to a get; nothing when the queue is empty.
Result<std::optional<Delivery>> take_one(Connection& connection, const std::string& queue, Milliseconds patience) {
  if (Status asked = connection.get(kVisiting, queue, false); !asked) return asked.error();
  const auto deadline = steady_clock::now() + patience;
  while (steady_clock::now() < deadline) {
    Result<std::optional<Event>> event = connection.next_event();
    if (!event) return event.error();
    if (!event->has_value()) {
      std::array<platform::Readiness, 1> ready = {platform::Readiness{connection.descriptor(), true, false}};
      if (!connection.has_buffered_input()) platform::wait_ready(ready, Milliseconds(100));
      continue;
    }
    if (Delivery* delivery = std::get_if<Delivery>(&**event)) return std::optional<Delivery>(std::move(*delivery));
    if (std::holds_alternative<GetEmpty>(**event)) return std::optional<Delivery>();
    if (const ChannelClosed* closed = std::get_if<ChannelClosed>(&**event)) return closed->error;
  }
  return Error{ErrorCode::kUnavailable, "the server does not answer"};
}

bool matches(const JobFilter& filter, const JobInfo& info) {
  if (!filter.kind.empty() && filter.kind != info.job.kind) return false;
  if (!filter.error.empty() &&
      (info.history.empty() || info.history.back().text.find(filter.error) == std::string::npos)) {
    return false;
  }
  if (filter.since && (!info.finished || *info.finished < *filter.since)) return false;
  return !filter.until || (info.finished && *info.finished <= *filter.until);
}

Error not_dead(const JobId& id) { return {ErrorCode::kNotFound, "job " + id.to_string() + " is not among the dead"}; }

// The connection was lost in the middle. Whether the acknowledgements of those that were dealt with have arrived is not
// known; the others were not touched.
std::vector<Status> interrupted(const std::vector<JobId>& ids, const std::map<JobId, Status>& dealt_with,
                                const Error& error) {
  std::vector<Status> answers;
  for (const JobId& id : ids) {
    const auto found = dealt_with.find(id);
    if (found == dealt_with.end()) {
      answers.push_back(error);
    } else {
      answers.push_back(found->second ? Status(unconfirmed(error)) : found->second);
    }
  }
  return answers;
}

}  // namespace

ForeignDead::ForeignDead(const Settings& settings, const ForeignSystem& dialect, Sender sender)
    : settings_(settings), dialect_(dialect), sender_(std::move(sender)) {}

Status ForeignDead::visit(const std::string& queue, const Visitor& visitor) {
  Result<std::unique_ptr<Connection>> connection =
      Connection::open(settings_, "compat visitor", 0, ConnectionUse::kReading);
  if (!connection) return connection.error();
  if (Status opened = (*connection)->open_channel(kVisiting); !opened) return opened;
  std::map<JobId, std::uint32_t> same;
  for (std::size_t seen = 0; seen < kMostVisited; ++seen) {
    const Result<std::optional<Delivery>> taken =
        take_one(**connection, dialect_.dead_queue(queue), settings_.patience);
    if (!taken) {
      if (taken.error().code == ErrorCode::kNotFound) return {};  // Nothing has ever died there.
      return taken.error();
    }
    if (!taken->has_value()) break;
    const Delivery& delivery = **taken;
    JobInfo info = dialect_.dead_info(delivery.message, delivery.key, queue);
    if (info.job.id.is_nil()) {
      std::uint32_t& before = same[id_by_content(delivery, 0)];
      info.job.id = id_by_content(delivery, before++);
    }
    if (!visitor(info, delivery)) continue;
    if (Status gone = (*connection)->ack(kVisiting, delivery.tag, false); !gone) return gone;
  }
  // What is left goes back to its place with the channel. Waited for, so that the next visitor finds it there.
  return (*connection)->close_channel(kVisiting);
}

Result<JobPage> ForeignDead::list(const std::vector<std::string>& queues, const JobFilter& filter,
                                  const std::string& cursor, std::size_t limit) {
  std::size_t skip = 0;
  const auto [end, error] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), skip);
  if (!cursor.empty() && (error != std::errc() || end != cursor.data() + cursor.size())) {
    return Error{ErrorCode::kInvalidArgument, "cursor: not one of a page before"};
  }
  std::vector<JobInfo> all;
  for (const std::string& queue : queues) {
    const Status visited = visit(queue, [&](const JobInfo& info, const Delivery&) {
      if (matches(filter, info)) all.push_back(info);
      return false;
    });
    if (!visited) return visited.error();
  }
  std::reverse(all.begin(), all.end());
  JobPage page;
  std::size_t bytes = 0;
  for (std::size_t i = skip; i < all.size() && page.jobs.size() < limit && bytes < JobPage::kMostBytes; ++i) {
    if (!filter.bodies) all[i].job.body = {};
    bytes += core::shown_bytes(all[i]);
    page.jobs.push_back(std::move(all[i]));
  }
  if (skip + page.jobs.size() < all.size()) page.next = std::to_string(skip + page.jobs.size());
  return page;
}

Result<JobInfo> ForeignDead::find(const std::vector<std::string>& queues, JobId id) {
  std::optional<JobInfo> found;
  for (const std::string& queue : queues) {
    const Status visited = visit(queue, [&](const JobInfo& info, const Delivery&) {
      if (info.job.id == id) found = info;
      return false;
    });
    if (!visited) return visited.error();
  }
  if (!found) return not_dead(id);
  return std::move(*found);
}

Result<std::vector<Status>> ForeignDead::replay(const std::vector<std::string>& queues, const std::vector<JobId>& ids,
                                                const ReplayOptions& options) {
  std::map<JobId, Status> statuses;
  for (const std::string& queue : queues) {
    const Status visited = visit(queue, [&](const JobInfo& info, const Delivery& delivery) {
      const JobId& id = info.job.id;
      if (std::find(ids.begin(), ids.end(), id) == ids.end() || statuses.contains(id)) return false;
      Result<Send> send = dialect_.replay(delivery.message, delivery.key, queue, options);
      if (send && send->message.message_id.empty()) send->message.message_id = id.to_string();
      const Status sent = send ? sender_(std::move(*send)) : Status(send.error());
      statuses.emplace(id, sent);
      return sent.has_value();
    });
    if (!visited && statuses.empty()) return visited.error();
    if (!visited) return interrupted(ids, statuses, visited.error());
  }
  std::vector<Status> answers;
  for (const JobId& id : ids) {
    const auto found = statuses.find(id);
    answers.push_back(found == statuses.end() ? Status(not_dead(id)) : found->second);
  }
  return answers;
}

Result<std::vector<Status>> ForeignDead::remove(const std::vector<std::string>& queues, const std::vector<JobId>& ids) {
  std::map<JobId, Status> removed;
  for (const std::string& queue : queues) {
    const Status visited = visit(queue, [&](const JobInfo& info, const Delivery&) {
      if (std::find(ids.begin(), ids.end(), info.job.id) == ids.end()) return false;
      return removed.emplace(info.job.id, Status()).second;
    });
    if (!visited && removed.empty()) return visited.error();
    if (!visited) return interrupted(ids, removed, visited.error());
  }
  std::vector<Status> answers;
  for (const JobId& id : ids) answers.push_back(removed.contains(id) ? Status() : Status(not_dead(id)));
  return answers;
}

Result<QueueCounts> ForeignDead::count(const std::string& amqp_queue) {
  Result<std::unique_ptr<Connection>> connection =
      Connection::open(settings_, "compat visitor", 0, ConnectionUse::kReading);
  if (!connection) return connection.error();
  if (Status opened = (*connection)->open_channel(kVisiting); !opened) return opened.error();
  Result<QueueCounts> counts = (*connection)->look_at_queue(kVisiting, amqp_queue);
  if (!counts && counts.error().code == ErrorCode::kNotFound) return QueueCounts{};
  return counts;
}

Result<std::uint32_t> ForeignDead::purge(const std::string& amqp_queue) {
  Result<std::unique_ptr<Connection>> connection =
      Connection::open(settings_, "compat visitor", 0, ConnectionUse::kReading);
  if (!connection) return connection.error();
  if (Status opened = (*connection)->open_channel(kVisiting); !opened) return opened.error();
  Result<std::uint32_t> purged = (*connection)->purge_queue(kVisiting, amqp_queue);
  if (!purged) return unconfirmed(purged.error());
  return purged;
}

}  // namespace bide::brokers::rabbitmq::compat
