#include "cli/rabbitmq_settings.h"

#include <string>
#include <utility>

#include "cli/failure.h"
#include "cli/open_client.h"

namespace bide::cli {

using namespace brokers::rabbitmq;

Settings rabbitmq_settings(const Invocation& call) {
  const std::string url = url_of(call);
  const std::string_view scheme = std::string_view(url).substr(0, url.find(':'));
  if (scheme != "amqp" && scheme != "amqps") {
    throw Failure{kConfiguration, "bide rabbitmq needs a RabbitMQ server: --url amqp://user@host:5672/vhost"};
  }
  const Result<Settings> settings = parse_amqp_url(std::string_view(url).substr(scheme.size() + 1), scheme == "amqps");
  if (!settings) throw Failure{kConfiguration, settings.error().message};
  if (!settings->compat.empty()) {
    throw Failure{kConfiguration, "compat=" + settings->compat + ": bide rabbitmq is about bide's own layout only"};
  }
  return *settings;
}

void fail_to_open(const Error& error) {
  throw Failure{error.code == ErrorCode::kInvalidArgument ? kConfiguration : exit_code_of(error.code), error.message,
                std::string(to_string(error.code))};
}

std::unique_ptr<Connection> connect(const Settings& settings, std::string_view purpose) {
  Result<std::unique_ptr<Connection>> connection = Connection::open(settings, purpose);
  if (!connection) fail_to_open(connection.error());
  return std::move(*connection);
}

}  // namespace bide::cli
