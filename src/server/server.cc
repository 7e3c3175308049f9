#include "server/server.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "brokers/open_broker.h"
#include "core/quote.h"
#include "metrics/metered_broker.h"
#include "metrics/metrics.h"
#include "outbox/outbox_broker.h"
#include "server/api/api.h"
#include "server/audit_trail.h"
#include "server/auth/authenticator.h"
#include "server/auth/token_file.h"
#include "server/callbacks/callback_options.h"
#include "server/callbacks/callback_service.h"
#include "server/callbacks/lease_credentials.h"
#include "server/dashboard/dashboard.h"
#include "server/dashboard/history_file.h"
#include "server/health.h"

namespace bide::server {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Result<std::vector<ListenAddress>> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<ListenAddress> addresses;
  for (const std::string& text : texts) {
    auto address = parse_listen_address(text);
    if (!address) return address.error();
    addresses.push_back(std::move(*address));
  }
  if (addresses.empty()) {
    return Error{ErrorCode::kInvalidArgument, "there is no address to listen on; name one with --listen"};
  }
  return addresses;
}

// Others must not be able to reach what asks nobody for a token.
Status check_exposure(const std::vector<ListenAddress>& addresses, const Authenticator& authenticator) {
  for (const ListenAddress& address : addresses) {
    if (address.is_local() || authenticator.has_tokens()) continue;
    return Error{ErrorCode::kInvalidArgument,
                 "others can reach " + core::quoted(to_string(address)) +
                     " and there are no tokens: make one with `bide token create`, or listen on 127.0.0.1"};
  }
  return {};
}

Admit admit_by(Authenticator& authenticator) {
  return [&authenticator](const Request& request, Scope scope) { return authenticator.admit(request, scope); };
}

// Of the embedded engine; others decide for themselves.
std::string durability_of(const std::string& url) {
  if (!place_in_store(url, "")) return {};
  const std::string weaker = weaker_durability(url);
  return weaker.empty() ? "fsync" : weaker;
}

void append(Routes& all, Routes more) { std::move(more.begin(), more.end(), std::back_inserter(all)); }

milliseconds left_until(Clock::time_point end) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(end - Clock::now()));
}

}  // namespace

// From the bottom up: each is used by those after it.
struct Server::Parts {
  explicit Parts(ServerOptions given) : options(std::move(given)), log(options.log) {}

  void open_credentials();
  Status open_authenticator();
  Status open_broker();
  Status open_http(std::vector<ListenAddress> addresses);
  void log_served(const Served& served) const;
  // Without a share in it: completions of the broker keep this, and a broker must not be destroyed by one of them. It
  // completes everything before it goes.
  std::shared_ptr<Inspector> lent_inspector() const { return {std::shared_ptr<void>(), opened.inspector.get()}; }
  decltype(HealthOptions::ask_outbox) ask_outbox() const;
  void log_refused(const Refusal& refusal) const;

  const ServerOptions options;
  const Log log;
  const std::shared_ptr<OwnListeners> own_listeners = std::make_shared<OwnListeners>();
  std::shared_ptr<const LeaseCredentials> lease_credentials;  // Null: callbacks never were on.
  std::unique_ptr<Authenticator> authenticator;
  std::shared_ptr<metrics::Metrics> metrics = std::make_shared<metrics::Metrics>();
  brokers::OpenedBroker opened;
  std::shared_ptr<metrics::MeteredBroker> metered;
  std::unique_ptr<HistoryFile> history_file;  // Null: there is no place for it.
  std::unique_ptr<CallbackService> callbacks;
  std::shared_ptr<Health> health;
  std::unique_ptr<Api> api;
  std::unique_ptr<HttpServer> http;
};

// The key lies in the data directory: what was delivered before a restart can be settled after it.
void Server::Parts::open_credentials() {
  const std::string folder = place_in_store(options.url, "callback_key").value_or("");
  std::error_code unknown;
  const bool off = options.callbacks.policy.mode() == AddressPolicy::Mode::kOff;
  if (off && !std::filesystem::exists(folder, unknown)) return;
  auto kept = LeaseCredentials::open(folder);
  if (!kept) {
    log.warning("receivers that answer 202 need a token of their own after a restart: " + kept.error().message);
    kept = LeaseCredentials::open("");
  }
  if (kept) lease_credentials = std::make_shared<const LeaseCredentials>(std::move(*kept));
}

Status Server::Parts::open_authenticator() {
  const std::string file = options.token_file.empty() ? token_file_of(options.url).value_or("") : options.token_file;
  auto opened_authenticator = Authenticator::open({.token_file = file,
                                 .local_without_token = options.local_without_token,
                                 .lease_of = [credentials = lease_credentials](std::string_view shown) {
                                   return credentials ? credentials->check(shown) : std::nullopt;
                                 },
                                 .on_reload = [this](std::string_view text) { log.info(text); },
                                 .on_refused = [this](const Refusal& refusal) { log_refused(refusal); }});
  if (!opened_authenticator) return opened_authenticator.error();
  authenticator = std::move(*opened_authenticator);
  return {};
}

Status Server::Parts::open_broker() {
  auto broker = brokers::open_broker(
      options.url, {.on_commit = [counted = metrics](auto time) { counted->commit_took(time); },
                    .on_damage =
                        [this, counted = metrics](const auto& damage) {
                          counted->damage_found(damage.file, damage.offset);
                          log.error("the store is damaged: " + damage.text);
                        }});
  if (!broker) return broker.error();
  opened = std::move(*broker);
  metered = std::make_shared<metrics::MeteredBroker>(opened.broker, metrics);
  if (const auto file = place_in_store(options.url, "job_history")) {
    history_file = std::make_unique<HistoryFile>(
        metered->history(),
        HistoryFileOptions{.path = *file, .on_problem = [this](std::string_view text) { log.warning(text); }});
  }
  CallbackOptions rules = options.callbacks;
  rules.accepted_folder = place_in_store(options.url, "accepted_callbacks").value_or("");
  open_credentials();
  rules.lease_credentials = lease_credentials;
  rules.own_listeners = own_listeners;
  auto started = CallbackService::start(
      std::move(rules), metered, lent_inspector(),
      {.on_delivery =
           [this](const DeliveryRecord& delivery) { metrics->callback_attempt(to_string(delivery.outcome)); },
       .on_problem = [this](std::string_view text) { log.warning(text); }});
  if (!started) return started.error();
  callbacks = std::move(*started);
  return {};
}

// Empty: there is no outbox.
decltype(HealthOptions::ask_outbox) Server::Parts::ask_outbox() const {
  const outbox::OutboxBroker* const outbox = outbox::outbox_of(*opened.broker);
  if (outbox == nullptr) return {};
  return [outbox](const std::function<void(const std::optional<metrics::OutboxFigures>&)>& done) {
    outbox->status([done](const Result<outbox::OutboxStatus>& status) {
      if (!status) return done(std::nullopt);
      const Time now = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
      const outbox::Forwarder::Stats& stats = status->forwarder;
      done(metrics::OutboxFigures{
          .waiting = status->waiting,
          .dead = status->dead,
          .disk_bytes = status->disk_bytes,
          .oldest_seconds = status->oldest ? std::chrono::duration<double>(now - *status->oldest).count() : 0,
          .reached = stats.reached && stats.problem.empty(),
          .forwarded = stats.forwarded,
          .refused = stats.refused,
          .duplicates = stats.duplicates,
          .retried = stats.retried});
    });
  };
}

Status Server::Parts::open_http(std::vector<ListenAddress> addresses) {
  health = Health::make({.broker = callbacks->broker(),
                         .inspector = lent_inspector(),
                         .metrics = metrics,
                         .ask_outbox = ask_outbox(),
                         .version = options.version,
                         .durability = weaker_durability(options.url)});
  CallbackOptions rules = options.callbacks;
  rules.own_listeners = own_listeners;
  api = std::make_unique<Api>(ApiOptions{
      .broker = callbacks->broker(),
      .inspector = opened.inspector.get(),
      .callback_queue = callback_queue(rules),
      .find_callback_problem = [rules](const Job& job) { return find_callback_problem(rules, job); },
      .backup_directory = options.backup_directory,
      .version = options.version});

  const Dashboard dashboard({.broker = metered,
                             .authenticator = authenticator.get(),
                             .version = options.version,
                             .broker_url = options.url,
                             .durability = durability_of(options.url),
                             .secure_cookies = !options.tls.certificate.empty(),
                             .on_signed_in = [this](const Identity& caller, const Request& request) {
                               log.info("signed in", {{"caller", caller.name}, {"peer", request.peer}});
                             }});
  Routes others = callbacks->routes();
  append(others, dashboard.routes());
  Routes routes = with_audit_trail(api->routes(std::move(others)), log);
  append(routes, health->routes());
  append(routes, dashboard.pages());
  auto started = HttpServer::start(
      {.listen = std::move(addresses),
       .certificate_file = options.tls.certificate,
       .key_file = options.tls.key,
       .threads = options.threads,
       .service = {.routes = std::move(routes),
                   .admit = admit_by(*authenticator),
                   .revalidation = {.version = [this] { return authenticator->version(); },
                            .is_still_valid = [this](const Identity& caller) { return authenticator->is_still_valid(caller); }},
                   .hosts = options.hosts,
                   .asks_for_user = options.local_without_token,
                   .limits = options.limits,
                   .on_served = [this](const Served& served) { log_served(served); },
                   .on_problem = [this](std::string_view text) { log.warning(text); }}});
  if (!started) return started.error();
  http = std::move(*started);
  own_listeners->set(http->addresses());  // With the ports that the system chose.
  return {};
}

void Server::Parts::log_served(const Served& served) const {
  const LogLevel level = served.status >= 500 && served.status != 503 ? LogLevel::kWarning : LogLevel::kDebug;
  if (!log.writes(level)) return;
  log.write(level, "served",
            {{"method", to_string(served.method)},
             {"path", served.pattern},
             {"status", served.status},
             {"peer", served.peer},
             {"duration", std::chrono::duration_cast<milliseconds>(served.duration)}});
}

void Server::Parts::log_refused(const Refusal& refusal) const {
  log.warning("refused", {{"why", refusal.why},
                          {"caller", refusal.caller},
                          {"peer", refusal.peer},
                          {"method", to_string(refusal.method)},
                          {"path", refusal.path.substr(0, 200)},
                          {"not_logged_before", refusal.unlogged}});
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() {
  parts_->http.reset();
  if (parts_->api) parts_->api->stop();
  if (parts_->callbacks) parts_->callbacks->stop(milliseconds(0));
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
  auto addresses = parse_addresses(options.listen);
  if (!addresses) return addresses.error();
  if (options.tls.certificate.empty() != options.tls.key.empty()) {
    return Error{ErrorCode::kInvalidArgument, "TLS needs both a certificate and its key"};
  }
  // Taken apart in order also when it cannot be put together.
  std::unique_ptr<Server> server(new Server(std::make_unique<Parts>(std::move(options))));
  Parts& parts = *server->parts_;
  parts.own_listeners->set(*addresses);
  // The tokens lie in the data directory, so what is wrong with that is told first.
  if (const Status opened = parts.open_broker(); !opened) return opened.error();
  if (const Status opened = parts.open_authenticator(); !opened) return opened.error();
  if (const Status hidden = check_exposure(*addresses, *parts.authenticator); !hidden) return hidden.error();
  if (const Status opened = parts.open_http(std::move(*addresses)); !opened) return opened.error();
  for (const std::string& url : server->urls()) parts.log.info("listening", {{"url", url}});
  for (const ListenAddress& address : server->addresses()) {
    if (address.is_local() || !parts.options.tls.certificate.empty()) continue;
    parts.log.warning("tokens and jobs cross the network in the clear: give a certificate and its key, or listen on "
                      "127.0.0.1 behind something that speaks TLS",
                      {{"address", to_string(address)}});
  }
  if (!parts.authenticator->has_tokens() && !parts.options.local_without_token) {
    parts.log.warning("nobody can get in yet: make a token with `bide token create`, or start with --local-without-token");
  }
  return server;
}

std::optional<std::string> Server::sign_in_link() const {
  if (!parts_->authenticator->has_tokens()) return std::nullopt;
  for (const std::string& url : urls()) {
    if (url.starts_with("http")) return url + "/#sign-in=" + parts_->authenticator->make_link_code();
  }
  return std::nullopt;
}

std::vector<std::string> Server::urls() const { return parts_->http->urls(); }
std::vector<ListenAddress> Server::addresses() const { return parts_->http->addresses(); }
HttpCounts Server::counts() const { return parts_->http->counts(); }
const Log& Server::log() const { return parts_->log; }

Status Server::reload() { return parts_->http->reload_certificate(); }

bool Server::is_responsive(milliseconds patience) const { return parts_->http->is_responsive(patience); }

bool Server::stop() {
  const Clock::time_point end = Clock::now() + parts_->options.grace;
  parts_->callbacks->begin_stop();
  parts_->health->set_draining();
  parts_->http->begin_drain();
  parts_->api->stop();
  const bool all_done = parts_->http->wait_drained(left_until(end));
  parts_->http->cut_off();
  parts_->callbacks->stop(left_until(end));
  return all_done;
}

}  // namespace bide::server
