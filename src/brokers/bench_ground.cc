#include "brokers/bench_ground.h"

#include <memory>
#include <utility>

#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/bare_publish.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/remove_prefix.h"

namespace bide::brokers {

namespace {

constexpr std::string_view kPrefix = "bide-bench";

// An error when none does.
Result<int> nodes_that_answer(const rabbitmq::Settings& settings) {
  int nodes = 0;
  Error failure;
  for (const rabbitmq::Host& host : settings.hosts) {
    rabbitmq::Settings one = settings;
    one.hosts = {host};
    const auto connection = rabbitmq::Connection::open(one, "bench");
    if (connection) {
      ++nodes;
    } else {
      failure = connection.error();
    }
  }
  if (nodes == 0) return failure;
  return nodes;
}

Result<BenchGround> rabbitmq_ground(std::string_view url, std::string_view rest, bool tls) {
  Result<rabbitmq::Settings> settings = rabbitmq::parse_amqp_url(rest, tls);
  if (!settings) return settings.error();
  if (!settings->compat.empty()) {
    return Error{ErrorCode::kUnsupported, "compat=" + settings->compat + ": the layout of others is not measured"};
  }
  settings->prefix = kPrefix;
  BenchGround ground;
  Result<int> nodes = nodes_that_answer(*settings);
  if (!nodes) return nodes.error();
  ground.nodes = *nodes;
  // The last one of two settings counts.
  ground.url =
      std::string(url) + (url.find('?') == std::string_view::npos ? "?" : "&") + "prefix=" + std::string(kPrefix);
  if (!tls) {
    Result<std::unique_ptr<rabbitmq::BarePublisher>> opened =
        rabbitmq::BarePublisher::open(*settings, std::string(kPrefix) + ".bare");
    if (!opened) return opened.error();
    const std::shared_ptr<rabbitmq::BarePublisher> bare = std::move(*opened);
    const std::uint32_t window = settings->window;
    ground.bare_enqueue_rate = [bare, window](std::uint64_t messages) { return bare->run(messages, window); };
  }
  ground.clean_up = [settings = *settings](const std::vector<std::string>& queues) {
    return rabbitmq::remove_prefix(settings, queues);
  };
  return ground;
}

}  // namespace

Result<BenchGround> prepare_bench(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  if (scheme == "amqp" || scheme == "amqps") {
    return rabbitmq_ground(url, url.substr(scheme.size() + 1), scheme == "amqps");
  }
  return Error{ErrorCode::kUnsupported,
               "a server is measured, such as amqp://HOST; the embedded engine is measured by `bide bench engine`"};
}

}  // namespace bide::brokers
