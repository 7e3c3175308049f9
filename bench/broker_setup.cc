#include "bench/broker_setup.h"

#include <memory>
#include <utility>

#include "bench/bare_publish.h"
#include "bench/redis_setup.h"
#include "bench/sql_setup.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/found_queues.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::bench {

namespace {

using namespace brokers::rabbitmq;

constexpr std::string_view kPrefix = "bide-bench";
constexpr ChannelNumber kLooking = 1;
constexpr ChannelNumber kDeleting = 2;

// An error when none does.
Result<int> nodes_that_answer(const Settings& settings) {
  int nodes = 0;
  Error failure;
  for (const Host& host : settings.hosts) {
    Settings one = settings;
    one.hosts = {host};
    const auto connection = Connection::open(one, "bench");
    if (connection) {
      ++nodes;
    } else {
      failure = connection.error();
    }
  }
  if (nodes == 0) return failure;
  return nodes;
}

// Deletes everything that bide may have declared under the prefix, with whatever is in it. What is not there is no error.
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

Result<BrokerSetup> rabbitmq_setup(std::string_view url, std::string_view rest, bool tls) {
  Result<Settings> settings = parse_amqp_url(rest, tls);
  if (!settings) return settings.error();
  if (!settings->compat.empty()) {
    return Error{ErrorCode::kUnsupported, "compat=" + settings->compat + ": the layout of others is not measured"};
  }
  settings->prefix = kPrefix;
  BrokerSetup setup;
  Result<int> nodes = nodes_that_answer(*settings);
  if (!nodes) return nodes.error();
  setup.nodes = *nodes;
  // The last one of two settings counts.
  setup.url =
      std::string(url) + (url.find('?') == std::string_view::npos ? "?" : "&") + "prefix=" + std::string(kPrefix);
  if (!tls) {
    Result<std::unique_ptr<BarePublisher>> opened =
        BarePublisher::open(*settings, std::string(kPrefix) + ".bare");
    if (!opened) return opened.error();
    const std::shared_ptr<BarePublisher> bare = std::move(*opened);
    const std::uint32_t window = settings->window;
    setup.bare_enqueue_rate = [bare, window](std::uint64_t messages) { return bare->run(messages, window); };
    setup.bare_single_us = [bare](int messages) { return bare->single_us(messages); };
  }
  setup.clean_up = [settings = *settings](const std::vector<std::string>& queues) {
    return remove_prefix(settings, queues);
  };
  return setup;
}

}  // namespace

Result<BrokerSetup> prepare_broker(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  if (scheme == "amqp" || scheme == "amqps") {
    return rabbitmq_setup(url, url.substr(scheme.size() + 1), scheme == "amqps");
  }
  if (scheme == "postgres" || scheme == "postgresql" || scheme == "mysql" || scheme == "mariadb") {
    return sql_setup(url, url.substr(scheme.size() + 1), scheme.starts_with("postgres"));
  }
  if (scheme == "redis" || scheme == "redis+sentinel") {
    return redis_setup(url, url.substr(scheme.size() + 1), scheme == "redis+sentinel");
  }
  return Error{ErrorCode::kUnsupported,
               "a server is measured, such as amqp://HOST, redis://HOST or postgres://HOST/DATABASE; the embedded engine is measured by `bide bench engine`"};
}

}  // namespace bide::bench
