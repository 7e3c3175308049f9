#include "cli/open_client.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "brokers/open_broker.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "cli/failure.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

constexpr std::string_view kEmbedded = "bide:";

// Commands that look around must not leave an empty store behind where the directory was mistyped, or holds something
// else.
void require_store(const std::string& url) {
  namespace fs = std::filesystem;
  // What is wrong with the URL, or with the place, is said by whoever opens it.
  const auto outbox = brokers::parse_outbox_url(url);
  const bool is_outbox = outbox && !outbox->directory.empty();
  const auto options = brokers::parse_engine_url(url);
  if (!options && !is_outbox) return;
  const fs::path directory(is_outbox ? outbox->directory : options->directory);
  std::error_code ignored;
  const bool is_there = fs::exists(directory, ignored);
  const bool has_journal = fs::status(directory / "journal", ignored).type() != fs::file_type::not_found;
  if (is_there && (has_journal || !fs::is_directory(directory, ignored))) return;
  throw Failure{kNotThere, std::string("there is no ") + (is_outbox ? "outbox" : "store") + " in " + core::quoted(directory.string()) +
                               "; `bide enqueue` makes one, --url or BIDE_URL names another"};
}

}  // namespace

std::string url_of(const Invocation& call) {
  if (const auto url = call.value(kUrlFlag.name)) return *url;
  const char* url = std::getenv("BIDE_URL");
  return url != nullptr && *url != '\0' ? url : "bide:./data";
}

std::string url_of_directory(const std::string& directory) {
  std::string url(kEmbedded);
  for (const char c : directory) {
    if (c == '%') {
      url += "%25";
    } else if (c == '?') {
      url += "%3f";
    } else {
      url += c;
    }
  }
  return url;
}

Client open_client(const std::string& url, Missing missing, ClientOptions options) {
  if (missing == Missing::kRefuse) require_store(url);
  auto client = Client::open(url, std::move(options));
  if (!client) fail_configured(client.error());
  return std::move(*client);
}

Client open_client(const Invocation& call, Missing missing) { return open_client(url_of(call), missing); }

std::vector<QueueInfo> queues_of(const Client& client) {
  return ask<std::vector<QueueInfo>>([&](auto done) { client.inspector().queues(std::move(done)); });
}

AuditReport audit_of(const Client& client) {
  return ask<AuditReport>([&](auto done) { client.inspector().audit(std::move(done)); });
}

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
