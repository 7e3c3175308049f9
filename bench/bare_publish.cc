#include "bench/bare_publish.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "bench/bare_log.h"
#include "brokers/rabbitmq/amqp_fields.h"
#include "brokers/rabbitmq/connection.h"

namespace bide::bench {

namespace {

using namespace brokers::rabbitmq;

constexpr amqp_channel_t kChannel = 1;
constexpr int kFrameBytes = 131072;
constexpr timeval kPatience{10, 0};

Error failed(const char* what) { return {ErrorCode::kUnavailable, std::string("bare publishes: ") + what}; }

}  // namespace

struct BarePublisher::State {
  amqp_connection_state_t connection = amqp_new_connection();
  const std::string body = std::string(kBodyBytes, 'b');
  std::string queue;
  std::uint64_t tag = 0;  // Of the last publish.

  ~State() {
    amqp_queue_delete(connection, kChannel, bytes_of(queue), 0, 0);
    amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
    amqp_destroy_connection(connection);
  }

  Status log_in(const Settings& settings) {
    amqp_socket_t* const socket = amqp_tcp_socket_new(connection);
    const Host& host = settings.hosts.front();
    const timeval patience = kPatience;
    if (socket == nullptr ||
        amqp_socket_open_noblock(socket, host.name.c_str(), host.port, &patience) != AMQP_STATUS_OK) {
      return failed("cannot connect");
    }
    amqp_set_rpc_timeout(connection, &patience);
    const amqp_rpc_reply_t reply = amqp_login(connection, settings.vhost.c_str(), 0, kFrameBytes, 0,
                                              AMQP_SASL_METHOD_PLAIN, settings.user.c_str(), settings.password.c_str());
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) return failed("cannot log in");
    if (amqp_channel_open(connection, kChannel) == nullptr) return failed("no channel");
    amqp_table_entry_t entry{};
    entry.key = amqp_cstring_bytes("x-queue-type");
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = amqp_cstring_bytes("quorum");
    const amqp_table_t arguments{1, &entry};
    if (amqp_queue_declare(connection, kChannel, bytes_of(queue), 0, 1, 0, 0, arguments) == nullptr) {
      return failed("the queue cannot be declared");
    }
    if (amqp_confirm_select(connection, kChannel) == nullptr) return failed("no confirms");
    return {};
  }

  Status publish() {
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
    properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
    const int status = amqp_basic_publish(connection, kChannel, amqp_empty_bytes, bytes_of(queue), 0, 0, &properties,
                                          bytes_of(body));
    if (status != AMQP_STATUS_OK) return failed(amqp_error_string2(status));
    ++tag;
    return {};
  }

  Status purge() {
    if (amqp_queue_purge(connection, kChannel, bytes_of(queue)) == nullptr) return failed("no purge");
    return {};
  }

  // Blocks for a frame, and takes a confirm out of it. The number of messages it confirms.
  Status take_confirms(std::uint64_t& confirmed, std::uint64_t first) {
    do {
      amqp_frame_t frame;
      const timeval patience = kPatience;
      if (amqp_simple_wait_frame_noblock(connection, &frame, &patience) != AMQP_STATUS_OK)
        return failed("no confirm came");
      if (frame.frame_type != AMQP_FRAME_METHOD) continue;
      if (frame.payload.method.id != AMQP_BASIC_ACK_METHOD) return failed("the server refused a message");
      const auto& ack = *static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
      if (ack.multiple != 0) {
        // Quorum queues confirm in order; single confirms before this one are included in it.
        confirmed = std::max(confirmed, ack.delivery_tag - first);
      } else {
        ++confirmed;
      }
      amqp_maybe_release_buffers(connection);
    } while (amqp_frames_enqueued(connection) != 0 || amqp_data_in_buffer(connection) != 0);
    return {};
  }
};

BarePublisher::BarePublisher(std::unique_ptr<State> state) : state_(std::move(state)) {}
BarePublisher::~BarePublisher() = default;

Result<std::unique_ptr<BarePublisher>> BarePublisher::open(const Settings& settings, std::string queue) {
  if (settings.tls.enabled) return Error{ErrorCode::kUnsupported, "bare publishes: not with amqps"};
  // What is wrong with the URL is told as everywhere else.
  if (const auto checked = Connection::open(settings, "bench"); !checked) return checked.error();
  auto state = std::make_unique<State>();
  state->queue = std::move(queue);
  if (Status status = state->log_in(settings); !status) return status.error();
  return std::unique_ptr<BarePublisher>(new BarePublisher(std::move(state)));
}

Result<double> BarePublisher::run(std::uint64_t messages, std::uint32_t window) {
  State& state = *state_;
  const std::uint64_t first = state.tag;
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t sent = 0;
  std::uint64_t confirmed = 0;
  while (confirmed < messages) {
    if (sent < messages && sent - confirmed < window) {
      if (Status status = state.publish(); !status) return status.error();
      ++sent;
      continue;
    }
    if (Status status = state.take_confirms(confirmed, first); !status) return status.error();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (Status status = state.purge(); !status) return status.error();
  return static_cast<double>(messages) / seconds.count();
}

Result<std::vector<double>> BarePublisher::single_us(int messages) {
  State& state = *state_;
  std::vector<double> all;
  for (int i = 0; i < messages; ++i) {
    const std::uint64_t first = state.tag;
    const auto start = std::chrono::steady_clock::now();
    if (Status status = state.publish(); !status) return status.error();
    std::uint64_t confirmed = 0;
    while (confirmed == 0) {
      if (Status status = state.take_confirms(confirmed, first); !status) return status.error();
    }
    all.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  if (Status status = state.purge(); !status) return status.error();
  return all;
}

}  // namespace bide::bench
