#include "brokers/rabbitmq/connection.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "brokers/rabbitmq/amqp_fields.h"

namespace bide::brokers::rabbitmq {

namespace {

constexpr int kFrameBytes = 131072;
constexpr int kReadFrameBytes = 4 * 1024 * 1024;
constexpr std::size_t kFrameOverhead = 64;  // Of a frame with properties, without these.
constexpr int kPoolPageBytes = 4096;

timeval to_timeval(Milliseconds duration) {
  timeval value{};
  value.tv_sec = static_cast<time_t>(duration.count() / 1000);
  value.tv_usec = static_cast<suseconds_t>(duration.count() % 1000 * 1000);
  return value;
}

amqp_queue_declare_t queue_request(const std::string& name) {
  amqp_queue_declare_t request{};
  request.queue = bytes_of(name);
  request.arguments = amqp_empty_table;
  return request;
}

// Content that follows a method: deliver, return or get-ok.
struct Assembly {
  enum class Of { kNothing, kDelivery, kReturn } of = Of::kNothing;
  Delivery delivery;
  ReturnedMessage returned;
  std::uint64_t missing = 0;

  AmqpMessage& message() { return of == Of::kDelivery ? delivery.message : returned.message; }
};

}  // namespace

struct Connection::State {
  amqp_connection_state_t connection = nullptr;
  bool alive = false;
  std::string why;  // Not alive any more, because.
  Milliseconds patience{0};
  std::size_t frame_bytes = 0;  // As agreed with the server.
  FieldTable server;
  amqp_pool_t scratch;
  std::map<ChannelNumber, Assembly> assemblies;

  State() { init_amqp_pool(&scratch, kPoolPageBytes); }
  ~State() {
    if (connection != nullptr) amqp_destroy_connection(connection);
    empty_amqp_pool(&scratch);
  }

  Error gone() const { return {ErrorCode::kUnavailable, why.empty() ? "the connection is closed" : why}; }

  Error lost(std::string reason) {
    alive = false;
    why = std::move(reason);
    return gone();
  }
  Error lost(int status) { return lost(std::string("the connection was lost: ") + amqp_error_string2(status)); }

  Status written(int status) {
    if (status == AMQP_STATUS_OK) return {};
    return lost(status);
  }

  // The connection was closed by the server, in its own words.
  Error closed_by_server(const amqp_connection_close_t& close) {
    const Error error = server_error(close.reply_code, close.reply_text);
    amqp_connection_close_ok_t ok{};
    amqp_send_method(connection, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
    alive = false;
    why = error.message;
    // Only a refusal at the beginning is anything but a lost connection; that is told by open().
    return {ErrorCode::kUnavailable, error.message};
  }

  Error channel_closed(ChannelNumber channel, const amqp_channel_close_t& close) {
    Error error = server_error(close.reply_code, close.reply_text);
    amqp_channel_close_ok_t ok{};
    const int status = amqp_send_method(connection, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
    assemblies.erase(channel);
    if (status != AMQP_STATUS_OK) lost(status);
    return error;
  }

  Status checked(ChannelNumber channel, const amqp_rpc_reply_t& reply) {
    switch (reply.reply_type) {
      case AMQP_RESPONSE_NORMAL:
        return {};
      case AMQP_RESPONSE_LIBRARY_EXCEPTION:
        return lost(reply.library_error);
      case AMQP_RESPONSE_SERVER_EXCEPTION:
        if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
          return channel_closed(channel, *static_cast<amqp_channel_close_t*>(reply.reply.decoded));
        }
        if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
          return closed_by_server(*static_cast<amqp_connection_close_t*>(reply.reply.decoded));
        }
        return lost("the server answered with an unknown method");
      default:
        return lost("the server did not answer");
    }
  }

  // Sends a request and waits for its answer, which lives until the next call. Null: see `status`.
  template <class Answer, class Request>
  Result<const Answer*> call(ChannelNumber channel, amqp_method_number_t request_id, amqp_method_number_t answer_id,
                             Request request) {
    if (!alive) return gone();
    amqp_method_number_t answers[] = {answer_id, 0};
    const amqp_rpc_reply_t reply = amqp_simple_rpc(connection, channel, request_id, answers, &request);
    if (Status status = checked(channel, reply); !status) return status.error();
    return static_cast<const Answer*>(reply.reply.decoded);
  }

  template <class Answer, class Request>
  Status ask(ChannelNumber channel, amqp_method_number_t request_id, amqp_method_number_t answer_id, Request request) {
    const Result<const Answer*> answer = call<Answer>(channel, request_id, answer_id, request);
    if (!answer) return answer.error();
    return {};
  }

  // Without waiting for an answer.
  template <class Request>
  Status send(ChannelNumber channel, amqp_method_number_t id, Request request) {
    if (!alive) return gone();
    return written(amqp_send_method(connection, channel, id, &request));
  }

  Result<const amqp_queue_declare_ok_t*> declare_queue(ChannelNumber channel, const amqp_queue_declare_t& request) {
    return call<amqp_queue_declare_ok_t>(channel, AMQP_QUEUE_DECLARE_METHOD, AMQP_QUEUE_DECLARE_OK_METHOD, request);
  }

  amqp_table_t table(const FieldTable& fields) { return to_amqp_table(fields, scratch); }

  Status consume(ChannelNumber channel, const ConsumeOptions& options, bool await_answer);

  // Of basic.deliver or basic.get-ok.
  template <class Method>
  void begin_delivery(ChannelNumber channel, const Method& method, std::string consumer) {
    Assembly& assembly = assemblies[channel] = {};
    assembly.of = Assembly::Of::kDelivery;
    assembly.delivery = {channel,
                         std::move(consumer),
                         method.delivery_tag,
                         method.redelivered != 0,
                         to_string(method.exchange),
                         to_string(method.routing_key),
                         {}};
  }
  Result<std::optional<Event>> take_method(const amqp_frame_t& frame);
  Result<std::optional<Event>> take_frame(const amqp_frame_t& frame);
  std::optional<Event> finish(Assembly& assembly);
};

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}

Connection::~Connection() {
  if (state_ == nullptr || !state_->alive) return;
  const timeval patience = to_timeval(Milliseconds(1000));
  amqp_set_rpc_timeout(state_->connection, &patience);
  amqp_connection_close(state_->connection, AMQP_REPLY_SUCCESS);
}

namespace {

// A peer that has vanished without a word is noticed by writes as well, not only by missing heartbeats.
void set_socket_options(int descriptor, Milliseconds heartbeat) {
  if (heartbeat == Milliseconds(0)) return;
  const unsigned int timeout = static_cast<unsigned int>(2 * heartbeat.count());
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

Status set_up_tls(amqp_socket_t* socket, const Tls& tls) {
  const auto refuse = [](const std::string& what, const std::string& file) -> Status {
    return Error{ErrorCode::kInvalidArgument, what + " cannot be used: " + file};
  };
  amqp_ssl_socket_set_verify_peer(socket, tls.verify ? 1 : 0);
  amqp_ssl_socket_set_verify_hostname(socket, tls.verify ? 1 : 0);
  amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST);
  const std::string ca = tls.ca.empty() ? "/etc/ssl/certs/ca-certificates.crt" : tls.ca;
  if (tls.verify && amqp_ssl_socket_set_cacert(socket, ca.c_str()) != AMQP_STATUS_OK) {
    return refuse("the CA file", ca);
  }
  if (!tls.certificate.empty() &&
      amqp_ssl_socket_set_key(socket, tls.certificate.c_str(), tls.key.c_str()) != AMQP_STATUS_OK) {
    return refuse("certificate and key", tls.certificate + ", " + tls.key);
  }
  return {};
}

FieldTable client_properties(std::string_view purpose) {
  return {{"product", "bide"},
          {"connection_name", "bide " + std::string(purpose)},
          {"capabilities", FieldTable{{"connection.blocked", true},
                                      {"consumer_cancel_notify", true},
                                      {"publisher_confirms", true},
                                      {"basic.nack", true},
                                      {"authentication_failure_close", true}}}};
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const Settings& settings, std::string_view purpose,
                                                     std::size_t first, ConnectionUse use) {
  Error failure{ErrorCode::kUnavailable, "no host"};
  for (std::size_t i = 0; i < settings.hosts.size(); ++i) {
    const Host& host = settings.hosts[(first + i) % settings.hosts.size()];
    const auto fail = [&](ErrorCode code, const std::string& text) {
      failure = {code, "cannot connect to RabbitMQ at " + host.name + ":" + std::to_string(host.port) + ": " + text};
    };
    auto state = std::make_unique<State>();
    state->patience = settings.patience;
    state->connection = amqp_new_connection();
    amqp_socket_t* socket =
        settings.tls.enabled ? amqp_ssl_socket_new(state->connection) : amqp_tcp_socket_new(state->connection);
    if (state->connection == nullptr || socket == nullptr) {
      fail(ErrorCode::kUnavailable, "out of memory");
      continue;
    }
    if (settings.tls.enabled) {
      if (Status ready = set_up_tls(socket, settings.tls); !ready) return ready.error();
    }
    const timeval patience = to_timeval(std::min<Milliseconds>(settings.patience, Milliseconds(5000)));
    if (const int status = amqp_socket_open_noblock(socket, host.name.c_str(), host.port, &patience);
        status != AMQP_STATUS_OK) {
      fail(ErrorCode::kUnavailable, amqp_error_string2(status));
      continue;
    }
    set_socket_options(amqp_get_sockfd(state->connection), settings.heartbeat);
    amqp_set_handshake_timeout(state->connection, &patience);
    const timeval calls = to_timeval(settings.patience);
    amqp_set_rpc_timeout(state->connection, &calls);

    const FieldTable said = client_properties(purpose);
    const amqp_table_t properties = state->table(said);
    const int heartbeat = static_cast<int>((settings.heartbeat.count() + 999) / 1000);
    const amqp_rpc_reply_t reply =
        amqp_login_with_properties(state->connection, settings.vhost.c_str(), 0, kFrameBytes, heartbeat, &properties,
                                   AMQP_SASL_METHOD_PLAIN, settings.user.c_str(), settings.password.c_str());
    if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
      const auto& close = *static_cast<amqp_connection_close_t*>(reply.reply.decoded);
      const Error error = server_error(close.reply_code, close.reply_text);
      fail(error.code, error.message);
      if (error.code == ErrorCode::kPermissionDenied) return failure;  // The others would say the same.
      continue;
    }
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) {
      fail(ErrorCode::kUnavailable, reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION
                                        ? amqp_error_string2(reply.library_error)
                                        : "the server does not speak AMQP 0-9-1");
      continue;
    }
    recycle_amqp_pool(&state->scratch);
    const int agreed = amqp_get_frame_max(state->connection);
    state->frame_bytes = static_cast<std::size_t>(agreed > 0 ? std::min(agreed, kFrameBytes) : kFrameBytes);
    if (use == ConnectionUse::kReading) {
      amqp_tune_connection(state->connection, amqp_get_channel_max(state->connection), kReadFrameBytes,
                           amqp_get_heartbeat(state->connection));
    }
    state->server = from_amqp_table(*amqp_get_server_properties(state->connection));
    state->alive = true;
    return std::unique_ptr<Connection>(new Connection(std::move(state)));
  }
  return failure;
}

int Connection::descriptor() const { return amqp_get_sockfd(state_->connection); }
bool Connection::alive() const { return state_->alive; }
const FieldTable& Connection::server_properties() const { return state_->server; }

Status Connection::open_channel(ChannelNumber channel) {
  return state_->send(channel, AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t{amqp_empty_bytes});
}

Status Connection::close_channel(ChannelNumber channel) {
  state_->assemblies.erase(channel);
  return state_->ask<amqp_channel_close_ok_t>(channel, AMQP_CHANNEL_CLOSE_METHOD, AMQP_CHANNEL_CLOSE_OK_METHOD,
                                              amqp_channel_close_t{AMQP_REPLY_SUCCESS, amqp_empty_bytes, 0, 0});
}

Status Connection::begin_close(ChannelNumber channel) {
  state_->assemblies.erase(channel);
  return state_->send(channel, AMQP_CHANNEL_CLOSE_METHOD,
                      amqp_channel_close_t{AMQP_REPLY_SUCCESS, amqp_empty_bytes, 0, 0});
}

Status Connection::confirm_select(ChannelNumber channel) {
  return state_->send(channel, AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{0});
}

Status Connection::declare_exchange(ChannelNumber channel, const ExchangeSpec& exchange) {
  amqp_exchange_declare_t request{};
  request.exchange = bytes_of(exchange.name);
  request.type = bytes_of(exchange.type);
  request.durable = exchange.durable ? 1 : 0;
  request.arguments = state_->table(exchange.arguments);
  Status status = state_->ask<amqp_exchange_declare_ok_t>(channel, AMQP_EXCHANGE_DECLARE_METHOD,
                                                          AMQP_EXCHANGE_DECLARE_OK_METHOD, request);
  recycle_amqp_pool(&state_->scratch);
  return status;
}

Result<QueueCounts> Connection::declare_queue(ChannelNumber channel, const QueueSpec& queue) {
  amqp_queue_declare_t request = queue_request(queue.name);
  request.durable = queue.durable ? 1 : 0;
  request.arguments = state_->table(queue.arguments);
  const auto answer = state_->declare_queue(channel, request);
  recycle_amqp_pool(&state_->scratch);
  if (!answer) return answer.error();
  return QueueCounts{(*answer)->message_count, (*answer)->consumer_count};
}

Result<std::string> Connection::declare_private_queue(ChannelNumber channel, const std::string& name) {
  amqp_queue_declare_t request = queue_request(name);
  request.exclusive = 1;
  const auto answer = state_->declare_queue(channel, request);
  if (!answer) return answer.error();
  return to_string((*answer)->queue);
}

Status Connection::bind(ChannelNumber channel, const BindingSpec& binding) {
  if (binding.to_exchange) {
    amqp_exchange_bind_t request{};
    request.source = bytes_of(binding.source);
    request.destination = bytes_of(binding.destination);
    request.routing_key = bytes_of(binding.key);
    request.arguments = amqp_empty_table;
    return state_->ask<amqp_exchange_bind_ok_t>(channel, AMQP_EXCHANGE_BIND_METHOD, AMQP_EXCHANGE_BIND_OK_METHOD,
                                                request);
  }
  amqp_queue_bind_t request{};
  request.queue = bytes_of(binding.destination);
  request.exchange = bytes_of(binding.source);
  request.routing_key = bytes_of(binding.key);
  request.arguments = amqp_empty_table;
  return state_->ask<amqp_queue_bind_ok_t>(channel, AMQP_QUEUE_BIND_METHOD, AMQP_QUEUE_BIND_OK_METHOD, request);
}

Result<QueueCounts> Connection::look_at_queue(ChannelNumber channel, const std::string& name) {
  amqp_queue_declare_t request = queue_request(name);
  request.passive = 1;
  const auto answer = state_->declare_queue(channel, request);
  if (!answer) return answer.error();
  return QueueCounts{(*answer)->message_count, (*answer)->consumer_count};
}

Status Connection::ask_counts(ChannelNumber channel, const std::string& name) {
  amqp_queue_declare_t request = queue_request(name);
  request.passive = 1;
  return state_->send(channel, AMQP_QUEUE_DECLARE_METHOD, request);
}

Status Connection::look_at_exchange(ChannelNumber channel, const std::string& name) {
  amqp_exchange_declare_t request{};
  request.exchange = bytes_of(name);
  request.type = amqp_empty_bytes;
  request.passive = 1;
  request.arguments = amqp_empty_table;
  return state_->ask<amqp_exchange_declare_ok_t>(channel, AMQP_EXCHANGE_DECLARE_METHOD, AMQP_EXCHANGE_DECLARE_OK_METHOD,
                                                 request);
}

Result<std::uint32_t> Connection::purge_queue(ChannelNumber channel, const std::string& name) {
  amqp_queue_purge_t request{};
  request.queue = bytes_of(name);
  const auto answer =
      state_->call<amqp_queue_purge_ok_t>(channel, AMQP_QUEUE_PURGE_METHOD, AMQP_QUEUE_PURGE_OK_METHOD, request);
  if (!answer) return answer.error();
  return (*answer)->message_count;
}

Status Connection::delete_queue(ChannelNumber channel, const std::string& name, bool if_empty, bool if_unused) {
  amqp_queue_delete_t request{};
  request.queue = bytes_of(name);
  request.if_empty = if_empty ? 1 : 0;
  request.if_unused = if_unused ? 1 : 0;
  return state_->ask<amqp_queue_delete_ok_t>(channel, AMQP_QUEUE_DELETE_METHOD, AMQP_QUEUE_DELETE_OK_METHOD, request);
}

Status Connection::delete_exchange(ChannelNumber channel, const std::string& name, bool if_unused) {
  amqp_exchange_delete_t request{};
  request.exchange = bytes_of(name);
  request.if_unused = if_unused ? 1 : 0;
  return state_->ask<amqp_exchange_delete_ok_t>(channel, AMQP_EXCHANGE_DELETE_METHOD, AMQP_EXCHANGE_DELETE_OK_METHOD,
                                                request);
}

Status Connection::State::consume(ChannelNumber channel, const ConsumeOptions& options, bool await_answer) {
  if (Status limited = send(channel, AMQP_BASIC_QOS_METHOD, amqp_basic_qos_t{0, options.prefetch, 0}); !limited) {
    return limited;
  }
  amqp_basic_consume_t request{};
  request.queue = bytes_of(options.queue);
  request.consumer_tag = bytes_of(options.tag);
  request.no_ack = options.no_ack ? 1 : 0;
  request.exclusive = options.exclusive ? 1 : 0;
  request.nowait = options.no_wait ? 1 : 0;
  request.arguments = table(options.arguments);
  Status status =
      await_answer
          ? ask<amqp_basic_consume_ok_t>(channel, AMQP_BASIC_CONSUME_METHOD, AMQP_BASIC_CONSUME_OK_METHOD, request)
          : send(channel, AMQP_BASIC_CONSUME_METHOD, request);
  recycle_amqp_pool(&scratch);
  return status;
}

Status Connection::consume(ChannelNumber channel, const ConsumeOptions& options) {
  return state_->consume(channel, options, !options.no_wait);
}

Status Connection::begin_consume(ChannelNumber channel, const ConsumeOptions& options) {
  return state_->consume(channel, options, false);
}

Status Connection::begin_cancel(ChannelNumber channel, const std::string& tag) {
  return state_->send(channel, AMQP_BASIC_CANCEL_METHOD, amqp_basic_cancel_t{bytes_of(tag), 0});
}

Status Connection::get(ChannelNumber channel, const std::string& queue, bool no_ack) {
  amqp_basic_get_t request{};
  request.queue = bytes_of(queue);
  request.no_ack = no_ack ? 1 : 0;
  return state_->send(channel, AMQP_BASIC_GET_METHOD, request);
}

Status Connection::publish(ChannelNumber channel, const std::string& exchange, const std::string& key,
                           const AmqpMessage& message, bool mandatory) {
  if (!state_->alive) return state_->gone();
  // Looked at before: the library writes the beginning of a message before it notices that the rest does not fit.
  if (!fits_short_texts(message) || properties_size(message) + kFrameOverhead > state_->frame_bytes) {
    return Error{ErrorCode::kInvalidArgument, "the headers of a message do not fit into a frame of " +
                                                  std::to_string(state_->frame_bytes) + " bytes"};
  }
  const amqp_basic_properties_t properties = to_amqp_properties(message, state_->scratch);
  const int status = amqp_basic_publish(state_->connection, channel, bytes_of(exchange), bytes_of(key),
                                        mandatory ? 1 : 0, 0, &properties, bytes_of(message.body));
  recycle_amqp_pool(&state_->scratch);
  return state_->written(status);
}

Status Connection::ack(ChannelNumber channel, std::uint64_t tag, bool multiple) {
  if (!state_->alive) return state_->gone();
  return state_->written(amqp_basic_ack(state_->connection, channel, tag, multiple ? 1 : 0));
}

Status Connection::nack(ChannelNumber channel, std::uint64_t tag, bool multiple, bool requeue) {
  if (!state_->alive) return state_->gone();
  return state_->written(amqp_basic_nack(state_->connection, channel, tag, multiple ? 1 : 0, requeue ? 1 : 0));
}

std::optional<Event> Connection::State::finish(Assembly& assembly) {
  Assembly whole = std::exchange(assembly, {});
  if (whole.of == Assembly::Of::kDelivery) return Event(std::move(whole.delivery));
  return Event(std::move(whole.returned));
}

Result<std::optional<Event>> Connection::State::take_method(const amqp_frame_t& frame) {
  const ChannelNumber channel = frame.channel;
  const void* decoded = frame.payload.method.decoded;
  switch (frame.payload.method.id) {
    case AMQP_BASIC_DELIVER_METHOD: {
      const auto& method = *static_cast<const amqp_basic_deliver_t*>(decoded);
      begin_delivery(channel, method, to_string(method.consumer_tag));
      return std::optional<Event>();
    }
    case AMQP_BASIC_GET_OK_METHOD: {
      const auto& method = *static_cast<const amqp_basic_get_ok_t*>(decoded);
      begin_delivery(channel, method, "");
      return std::optional<Event>();
    }
    case AMQP_BASIC_GET_EMPTY_METHOD:
      return std::optional<Event>(GetEmpty{channel});
    case AMQP_BASIC_RETURN_METHOD: {
      const auto& method = *static_cast<const amqp_basic_return_t*>(decoded);
      Assembly& assembly = assemblies[channel] = {};
      assembly.of = Assembly::Of::kReturn;
      assembly.returned = {channel,
                           method.reply_code,
                           to_string(method.reply_text),
                           to_string(method.exchange),
                           to_string(method.routing_key),
                           {}};
      return std::optional<Event>();
    }
    case AMQP_BASIC_ACK_METHOD: {
      const auto& method = *static_cast<const amqp_basic_ack_t*>(decoded);
      return std::optional<Event>(Confirm{channel, method.delivery_tag, method.multiple != 0, true});
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto& method = *static_cast<const amqp_basic_nack_t*>(decoded);
      return std::optional<Event>(Confirm{channel, method.delivery_tag, method.multiple != 0, false});
    }
    case AMQP_BASIC_CANCEL_METHOD: {
      const auto& method = *static_cast<const amqp_basic_cancel_t*>(decoded);
      ConsumerCancelled cancelled{channel, to_string(method.consumer_tag)};
      // A consumer that has timed out stays registered until the client cancels it, too (4.3). Where the server has
      // forgotten it already, that does nothing; basic.cancel-ok would end the connection before 4.3.
      amqp_basic_cancel_t answer{bytes_of(cancelled.consumer), 1};
      const int status = amqp_send_method(connection, channel, AMQP_BASIC_CANCEL_METHOD, &answer);
      if (status != AMQP_STATUS_OK) return lost(status);
      return std::optional<Event>(std::move(cancelled));
    }
    case AMQP_BASIC_CONSUME_OK_METHOD: {
      const auto& method = *static_cast<const amqp_basic_consume_ok_t*>(decoded);
      return std::optional<Event>(ConsumerStarted{channel, to_string(method.consumer_tag)});
    }
    case AMQP_BASIC_CANCEL_OK_METHOD: {
      const auto& method = *static_cast<const amqp_basic_cancel_ok_t*>(decoded);
      return std::optional<Event>(ConsumerEnded{channel, to_string(method.consumer_tag)});
    }
    case AMQP_QUEUE_DECLARE_OK_METHOD: {
      const auto& method = *static_cast<const amqp_queue_declare_ok_t*>(decoded);
      return std::optional<Event>(QueueCounted{channel, to_string(method.queue), method.message_count});
    }
    case AMQP_CONNECTION_BLOCKED_METHOD: {
      const auto& method = *static_cast<const amqp_connection_blocked_t*>(decoded);
      return std::optional<Event>(Blocked{to_string(method.reason)});
    }
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
      return std::optional<Event>(Unblocked{});
    case AMQP_CHANNEL_CLOSE_METHOD: {
      const auto& method = *static_cast<const amqp_channel_close_t*>(decoded);
      return std::optional<Event>(ChannelClosed{channel, channel_closed(channel, method)});
    }
    case AMQP_CONNECTION_CLOSE_METHOD:
      return closed_by_server(*static_cast<const amqp_connection_close_t*>(decoded));
    default:
      return std::optional<Event>();  // An answer that nobody waits for.
  }
}

Result<std::optional<Event>> Connection::State::take_frame(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD) return take_method(frame);
  const auto found = assemblies.find(frame.channel);
  if (found == assemblies.end() || found->second.of == Assembly::Of::kNothing) return std::optional<Event>();
  Assembly& assembly = found->second;
  if (frame.frame_type == AMQP_FRAME_HEADER) {
    assembly.message() =
        from_amqp_properties(*static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded));
    assembly.missing = frame.payload.properties.body_size;
    assembly.message().body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(assembly.missing, 1 << 20)));
  } else if (frame.frame_type == AMQP_FRAME_BODY) {
    const amqp_bytes_t& fragment = frame.payload.body_fragment;
    if (fragment.len > assembly.missing) return lost("the server sent more of a message than it had announced");
    assembly.message().body.append(static_cast<const char*>(fragment.bytes), fragment.len);
    assembly.missing -= fragment.len;
  }
  if (assembly.missing > 0) return std::optional<Event>();
  return finish(assembly);
}

Result<std::optional<Event>> Connection::next_event() {
  while (true) {
    if (!state_->alive) return state_->gone();
    amqp_frame_t frame;
    const timeval at_once{};
    const int status = amqp_simple_wait_frame_noblock(state_->connection, &frame, &at_once);
    if (status == AMQP_STATUS_TIMEOUT) return std::optional<Event>();
    if (status != AMQP_STATUS_OK) return state_->lost(status);
    Result<std::optional<Event>> event = state_->take_frame(frame);
    amqp_maybe_release_buffers(state_->connection);
    if (!event || event->has_value()) return event;
  }
}

bool Connection::has_buffered_input() const {
  return amqp_frames_enqueued(state_->connection) != 0 || amqp_data_in_buffer(state_->connection) != 0;
}

}  // namespace bide::brokers::rabbitmq
