#include "brokers/rabbitmq/found_queues.h"

#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/notices.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr ChannelNumber kReading = 1;
constexpr std::uint16_t kPrefetch = 1000;
constexpr std::uint64_t kAcks = 250;
constexpr Milliseconds kSilence{1000};  // So long without a notice: that was the last.

FoundDelayQueue expected(const Topology& topology) {
  FoundDelayQueue queue;
  queue.spec = topology.queues.front();
  queue.next = *find_field(queue.spec.arguments, "x-dead-letter-exchange")->text();
  return queue;
}

// All that may be there.
std::vector<FoundDelayQueue> all_names(const Settings& settings) {
  std::vector<FoundDelayQueue> all;
  for (int lap = static_cast<int>(Milliseconds(Limits::kDelay) / kDelayLap); lap > 0; --lap) {
    all.push_back(expected(delay_lap(settings, lap)));
    all.back().lap = lap;
  }
  for (int level = settings.delay.top(); level >= 0; --level) {
    for (int digit = 1; digit < settings.delay.radix; ++digit) {
      all.push_back(expected(delay_hop(settings, {level, level, digit})));
      all.back().level = level;
      all.back().digit = digit;
    }
  }
  return all;
}

}  // namespace

Result<std::vector<FoundDelayQueue>> find_delay_queues(const Settings& settings, Examiner& examiner) {
  const Names names(settings.prefix);
  std::vector<FoundDelayQueue> found;
  // A server logs each miss as an error. So a level is looked into only when an exchange beside it is there.
  std::map<std::string, bool> exchanges;
  const auto is_there = [&](const std::string& exchange) -> Result<bool> {
    if (const auto known = exchanges.find(exchange); known != exchanges.end()) return known->second;
    const Result<bool> answer = examiner.has_exchange(exchange);
    if (answer) exchanges[exchange] = *answer;
    return answer;
  };
  for (FoundDelayQueue& queue : all_names(settings)) {
    const Result<bool> before = is_there(queue.lap > 0 ? names.lap(queue.lap) : names.delay_exchange(queue.level));
    if (!before) return before.error();
    const Result<bool> behind = is_there(queue.next);
    if (!behind) return behind.error();
    if (!*before && !*behind) continue;
    const Result<std::optional<QueueCounts>> counts = examiner.look_at(queue.spec.name);
    if (!counts) return counts.error();
    if (!*counts) continue;
    queue.counts = **counts;
    found.push_back(std::move(queue));
  }
  return found;
}

Result<std::set<std::string>> announced_queues(const Settings& settings) {
  std::set<std::string> queues;
  if (!settings.notices) return queues;
  Result<std::unique_ptr<Connection>> opened = Connection::open(settings, "doctor", 0, ConnectionUse::kReading);
  if (!opened) return opened.error();
  Connection& connection = **opened;
  if (Status status = connection.open_channel(kReading); !status) return status.error();
  ConsumeOptions options;
  options.queue = Names(settings.prefix).notices();
  options.tag = "bide-doctor";
  options.prefetch = kPrefetch;
  options.arguments = {{"x-stream-offset", "first"}};
  if (const Status status = connection.consume(kReading, options); !status) {
    // Not there, or not a stream: whoever compares it with what is wanted says so.
    if (connection.alive()) return queues;
    return status.error();
  }
  std::uint64_t unacknowledged = 0;
  auto last = steady_clock::now();
  while (true) {
    Result<std::optional<Event>> event = connection.next_event();
    if (!event) return event.error();
    if (!event->has_value()) {
      const auto left = std::chrono::ceil<Milliseconds>(last + kSilence - steady_clock::now());
      if (left <= Milliseconds(0)) return queues;
      std::array<platform::Readiness, 1> ready = {platform::Readiness{connection.descriptor(), true, false}};
      platform::wait_ready(ready, left);
      continue;
    }
    const Delivery* delivery = std::get_if<Delivery>(&**event);
    if (delivery == nullptr) continue;
    last = steady_clock::now();
    for (const Notice& notice : Notice::parse_lines(delivery->message.body)) {
      if (notice.kind == Notice::Kind::kQueue) queues.insert(notice.name);
    }
    if (++unacknowledged < kAcks) continue;
    if (Status status = connection.ack(kReading, delivery->tag, true); !status) return status.error();
    unacknowledged = 0;
  }
}

}  // namespace bide::brokers::rabbitmq
