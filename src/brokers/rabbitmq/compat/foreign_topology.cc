#include "brokers/rabbitmq/compat/foreign_topology.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "brokers/rabbitmq/amqp_fields.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr int kMostDifferences = 16;
// Of a frame of 128 KiB, which properties must fit into.
constexpr std::size_t kMostProperties = 120 * 1024;
constexpr std::size_t kMostNames = 1024;

Settings without_notices(Settings settings) {
  settings.notices = false;
  return settings;
}

bool exists_but_differs(const Error& error) { return error.code == ErrorCode::kInvalidArgument; }

bool decides_where_dead_letters_go(const std::string& argument) { return argument.starts_with("x-dead-letter-"); }

}  // namespace

std::optional<Inequivalent> parse_inequivalent(std::string_view text) {
  const auto after = [&](std::string_view mark) -> std::optional<std::string_view> {
    const std::size_t at = text.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    return text.substr(at + mark.size());
  };
  const std::optional<std::string_view> argument = after("inequivalent arg '");
  const std::optional<std::string_view> current = after("but current is ");
  if (!argument || !current || argument->find('\'') == std::string_view::npos) return std::nullopt;
  Inequivalent result;
  result.argument = argument->substr(0, argument->find('\''));
  if (!result.argument.starts_with("x-")) return std::nullopt;  // Durable, exclusive: not an argument.
  if (current->starts_with("none")) return result;

  const std::size_t start = current->starts_with("the value '") ? 11
                            : current->starts_with("'")         ? 1
                                                                : std::string_view::npos;
  if (start == std::string_view::npos) return std::nullopt;
  const std::string_view value = current->substr(start, current->find('\'', start) - start);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && end == value.data() + value.size()) {
    result.current = Field(number);
  } else if (value == "true" || value == "false") {
    result.current = Field(value == "true");
  } else {
    result.current = Field(value);
  }
  return result;
}

ForeignTopology::ForeignTopology(const Settings& settings, ChannelNumber first_channel)
    : settings_(without_notices(settings)),
      names_(settings.prefix),
      channel_(first_channel),
      declared_(settings_, static_cast<ChannelNumber>(first_channel + 1)) {}

void ForeignTopology::forget() {
  declared_.forget();
  exchanges_.clear();
  queues_.clear();
  bindings_.clear();
}

void ForeignTopology::reconnected() {
  forget();
  declared_.reconnected();
  channel_open_ = false;
}

void ForeignTopology::channel_closed(ChannelNumber channel) {
  declared_.channel_closed(channel);
  if (channel == channel_) channel_open_ = false;
}

Status ForeignTopology::open_channel(Connection& connection) {
  if (channel_open_) return {};
  Status opened = connection.open_channel(channel_);
  channel_open_ = opened.has_value();
  return opened;
}

Status ForeignTopology::ensure_exchange(Connection& connection, const ExchangeSpec& exchange) {
  if (exchanges_.contains(exchange.name)) return {};
  if (Status opened = open_channel(connection); !opened) return opened;
  if (Status declared = connection.declare_exchange(channel_, exchange); !declared) {
    channel_open_ = false;
    // Of another type, or not ours to declare. It is there, and its owner knows why.
    if (!connection.alive() || !exists_but_differs(declared.error())) return declared;
  }
  exchanges_.insert(exchange.name);
  return {};
}

Status ForeignTopology::ensure_queue(Connection& connection, QueueSpec queue) {
  if (queues_.contains(queue.name)) return {};
  const QueueSpec wanted = queue;
  for (int i = 0; i < kMostDifferences; ++i) {
    if (Status opened = open_channel(connection); !opened) return opened;
    const Result<QueueCounts> declared = connection.declare_queue(channel_, queue);
    if (declared) {
      queues_.insert(queue.name);
      return {};
    }
    channel_open_ = false;
    if (!connection.alive() || !exists_but_differs(declared.error())) return declared.error();
    std::optional<Inequivalent> different = parse_inequivalent(declared.error().message);
    const bool harmless = different && (find_field(wanted.arguments, different->argument) == nullptr ||
                                        !decides_where_dead_letters_go(different->argument));
    if (!harmless) {
      return Error{ErrorCode::kInvalidArgument,
                   "queue " + queue.name + " is not as it must be, so that messages could get lost; " +
                       declared.error().message + " (declare=no in the URL takes it as it is)"};
    }
    std::erase_if(queue.arguments, [&](const auto& entry) { return entry.first == different->argument; });
    if (different->current) queue.arguments.emplace_back(different->argument, std::move(*different->current));
  }
  return Error{ErrorCode::kInvalidArgument, "queue " + queue.name + " has too many arguments that differ"};
}

Status ForeignTopology::ensure(Connection& connection, const Topology& topology) {
  if (!settings_.declare) return {};
  for (const ExchangeSpec& exchange : topology.exchanges) {
    if (Status status = ensure_exchange(connection, exchange); !status) return status;
  }
  for (const QueueSpec& queue : topology.queues) {
    if (Status status = ensure_queue(connection, queue); !status) return status;
  }
  for (const BindingSpec& binding : topology.bindings) {
    const std::string name = binding.source + '\n' + binding.destination + '\n' + binding.key;
    if (bindings_.contains(name)) continue;
    if (Status opened = open_channel(connection); !opened) return opened;
    if (Status bound = connection.bind(channel_, binding); !bound) {
      channel_open_ = false;
      return bound;
    }
    bindings_.insert(name);
  }
  return {};
}

Result<Publication> ForeignTopology::prepare(Connection& connection, Send send) {
  if (Status there = ensure(connection, send.needs); !there) return there.error();
  if (send.delay <= Milliseconds(0)) {
    send.needs = {};
    return *without_preparation(send);
  }
  const DelayPath path = delay_path(settings_.delay, send.delay);
  if (Status there = declared_.foundation(connection); !there) return there.error();
  if (Status there = declared_.path(connection, path); !there) return there.error();
  const Topology way_back{{}, {}, {{names_.due(), send.key, send.key, false}}};
  if (Status there = ensure(connection, way_back); !there) return there.error();
  Route route = route_of(names_, path, send.key);
  Publication publication;
  publication.to = {
      .kind = Destination::Kind::kExchange, .name = std::move(route.exchange), .key = std::move(route.key)};
  publication.message = std::move(send.message);
  fit_headers(publication.message);
  publication.message.headers.emplace_back("CC", std::move(route.cc));
  return publication;
}

void fit_headers(AmqpMessage& message) {
  std::string dropped;
  while (properties_size(message) > kMostProperties && !message.headers.empty()) {
    const auto size = [](const std::pair<std::string, Field>& header) {
      AmqpMessage alone;
      alone.headers = {header};
      return properties_size(alone);
    };
    const auto largest = std::max_element(message.headers.begin(), message.headers.end(),
                                          [&](const auto& a, const auto& b) { return size(a) < size(b); });
    dropped += (dropped.empty() ? "" : " ") + largest->first;
    message.headers.erase(largest);
  }
  if (!dropped.empty()) message.headers.emplace_back("bide-dropped-headers", dropped.substr(0, kMostNames));
}

std::optional<Publication> without_preparation(Send& send) {
  const bool nothing = send.needs.exchanges.empty() && send.needs.queues.empty() && send.needs.bindings.empty();
  if (!nothing || send.delay > Milliseconds(0)) return std::nullopt;
  Publication publication;
  publication.to = {.kind = Destination::Kind::kExchange, .name = std::move(send.exchange), .key = std::move(send.key)};
  publication.message = std::move(send.message);
  fit_headers(publication.message);
  return publication;
}

}  // namespace bide::brokers::rabbitmq::compat
