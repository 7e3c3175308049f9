#include "brokers/rabbitmq/remove_prefix.h"

#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/found_queues.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

namespace {

constexpr ChannelNumber kLooking = 1;
constexpr ChannelNumber kDeleting = 2;

}  // namespace

Status remove_prefix(const Settings& settings, const std::vector<std::string>& queues) {
  Result<std::unique_ptr<Connection>> opened = Connection::open(settings, "cleaning");
  if (!opened) return opened.error();
  Connection& connection = **opened;
  if (Status status = connection.open_channel(kDeleting); !status) return status;
  Examiner examiner(connection, kLooking);
  const Result<std::vector<FoundDelayQueue>> delays = find_delay_queues(settings, examiner);
  if (!delays) return delays.error();
  Topology all = foundation(settings);
  for (const std::string& queue : queues) {
    all.add(ready_queue(settings, queue));
    all.add(dead_queue(settings, queue));
  }
  for (const FoundDelayQueue& queue : *delays) all.queues.push_back(queue.spec);
  for (int level = 0; level < settings.delay.levels(); ++level) all.add(delay_exit(settings, level));
  for (int lap = static_cast<int>(Milliseconds(Limits::kDelay) / kDelayLap); lap > 0; --lap) {
    all.exchanges.push_back({Names(settings.prefix).lap(lap), "fanout", {}});
  }
  // The server answers "deleted" also for what was never there.
  for (const QueueSpec& queue : all.queues) {
    if (Status status = connection.delete_queue(kDeleting, queue.name, false, false); !status) return status;
  }
  for (const ExchangeSpec& exchange : all.exchanges) {
    if (Status status = connection.delete_exchange(kDeleting, exchange.name, false); !status) return status;
  }
  return {};
}

}  // namespace bide::brokers::rabbitmq
