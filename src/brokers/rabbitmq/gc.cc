#include "brokers/rabbitmq/gc.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/found_queues.h"
#include "brokers/rabbitmq/probe.h"

namespace bide::brokers::rabbitmq {

namespace {

constexpr ChannelNumber kLooking = 1;
constexpr ChannelNumber kDeleting = 2;
// Jobs that are out with a consumer are not counted by a passive declare: its prefetch at most.
constexpr std::uint64_t kMostPrefetch = 65'535;

// Empty: nothing speaks against it.
Result<std::string> why_keep_all(const Settings& settings, const GcOptions& options, Examiner& examiner) {
  const Names names(settings.prefix);
  const Result<std::optional<QueueCounts>> lost = examiner.look_at(names.lost());
  if (!lost) return lost.error();
  if (!*lost) return "without " + names.lost() + " jobs that have lost their way may wait in it uncounted";
  if (settings.max_length == 0) return std::string();
  Result<std::set<std::string>> queues = announced_queues(settings);
  if (!queues) return queues.error();
  queues->insert(options.queues.begin(), options.queues.end());
  for (const std::string& queue : *queues) {
    const Result<std::optional<QueueCounts>> counts = examiner.look_at(names.queue(queue));
    if (!counts) return counts.error();
    if (!*counts) continue;
    const std::uint64_t most = (*counts)->messages + (*counts)->consumers * kMostPrefetch;
    if (most < settings.max_length) continue;
    return names.queue(queue) + " is full or may be: jobs may wait in front of it uncounted";
  }
  return std::string();
}

std::string why_keep(const FoundDelayQueue& queue, const std::vector<FoundDelayQueue>& all) {
  if (queue.counts.messages > 0) return std::to_string(queue.counts.messages) + " jobs wait in it";
  if (queue.counts.consumers > 0) return "it has a consumer";
  for (const FoundDelayQueue& other : all) {
    if (other.comes_before(queue) && other.counts.messages > 0) {
      return "jobs that wait in " + other.spec.name + " may come through it";
    }
  }
  return "";
}

// On condition where the server can; otherwise after one more look.
class Remover {
 public:
  explicit Remover(const Settings& settings) : settings_(settings) {}

  // Empty: it is gone. Otherwise why it was kept.
  Result<std::string> remove(const std::string& queue) {
    if (Status status = connect(); !status) return status.error();
    if (conditional_) {
      const Status status = connection_->delete_queue(kDeleting, queue, true, true);
      if (status) return std::string();
      if (connection_->alive()) {
        connection_.reset();
        return status.error().message;
      }
      // Quorum queues refuse the conditions, and the server hangs up over it.
      if (status.error().message.find("NOT_IMPLEMENTED") == std::string::npos) return status.error();
      conditional_ = false;
      connection_.reset();
      if (Status again = connect(); !again) return again.error();
    }
    const Result<QueueCounts> counts = connection_->look_at_queue(kDeleting, queue);
    if (!counts) return counts.error();
    if (counts->messages > 0 || counts->consumers > 0) return std::string("it is in use again");
    if (Status status = connection_->delete_queue(kDeleting, queue, false, false); !status) return status.error();
    return std::string();
  }

 private:
  Status connect() {
    if (connection_ != nullptr) return {};
    Result<std::unique_ptr<Connection>> opened = Connection::open(settings_, "gc", 0, ConnectionUse::kReading);
    if (!opened) return opened.error();
    connection_ = std::move(*opened);
    return connection_->open_channel(kDeleting);
  }

  const Settings& settings_;
  std::unique_ptr<Connection> connection_;
  bool conditional_ = true;
};

}  // namespace

Result<std::vector<GcEntry>> collect_garbage(const Settings& settings, const GcOptions& options) {
  Result<std::unique_ptr<Connection>> connection = Connection::open(settings, "gc", 0, ConnectionUse::kReading);
  if (!connection) return connection.error();
  Examiner examiner(**connection, kLooking);
  const Result<std::string> keep_all = why_keep_all(settings, options, examiner);
  if (!keep_all) return keep_all.error();
  const Result<std::vector<FoundDelayQueue>> found = find_delay_queues(settings, examiner);
  if (!found) return found.error();

  std::vector<GcEntry> entries;
  std::vector<DelayProbe> probes;
  std::vector<std::size_t> candidates;
  for (const FoundDelayQueue& queue : *found) {
    std::string why = !keep_all->empty() ? *keep_all : why_keep(queue, *found);
    if (why.empty() && queue.lap > 1) why = "a lap of years cannot be tried without starting one";
    if (why.empty()) {
      candidates.push_back(entries.size());
      probes.push_back({queue.spec.name, queue.next});
    }
    entries.push_back({queue.spec.name, false, std::move(why)});
  }
  const Result<std::vector<bool>> passed = pass_through(settings, probes, options.patience);
  if (!passed) return passed.error();
  Remover remover(settings);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    GcEntry& entry = entries[candidates[i]];
    if (!(*passed)[i]) {
      entry.why = "a message sent through it did not come out: jobs may wait in it uncounted";
      continue;
    }
    if (!options.dry_run) {
      Result<std::string> why = remover.remove(entry.queue);
      if (!why) return why.error();
      entry.why = std::move(*why);
    }
    entry.removed = entry.why.empty();
  }
  return entries;
}

}  // namespace bide::brokers::rabbitmq
