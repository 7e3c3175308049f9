// VersionFacts: what a version of RabbitMQ does differently, in one place. From the release notes, the documentation and
// the source of the server; whoever behaves by version asks here.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "brokers/rabbitmq/amqp_message.h"

namespace bide::brokers::rabbitmq {

struct ServerVersion {
  int major_number = 0;
  int minor_number = 0;

  // "3.10.8" as numbers. Zeros where there is no number.
  static ServerVersion parse(std::string_view text);
  // Of what a connection was told.
  static ServerVersion of(const FieldTable& server_properties);

  friend auto operator<=>(const ServerVersion&, const ServerVersion&) = default;
};

// As of 3.10, the oldest version that is supported.
struct VersionFacts {
  // A consumer that exceeds consumer_timeout. False: its channel is closed. True: basic.cancel, with the deliveries of
  // that consumer returned to the queue and the channel left open; the consumer stays registered until the client
  // cancels it, too.
  bool timeout_cancels_consumer = false;

  // What adds to x-delivery-count, against which x-delivery-limit is counted. basic.reject and the end of a channel
  // or connection always do.
  bool nack_counts = true;  // basic.nack with requeue.
  bool timeout_counts = true;

  // Of a quorum queue that is declared without x-delivery-limit.
  std::optional<int> default_delivery_limit = {};

  // The server continues the x-death header of a message that a client publishes. A copy with an old one may be dropped
  // as a cycle.
  bool continues_x_death = true;

  // A node that is killed right after a quorum queue was declared may start that queue empty: its Raft member is found
  // by a list that is written with a delay. Later versions keep the member's id with the queue.
  bool forgets_new_queues = true;

  // cluster_partition_handling (pause_minority) has an effect.
  bool has_partition_handling = true;

  // Bytes of the longest body, unless max_message_size is set.
  std::size_t message_bytes = std::size_t{128} * 1024 * 1024;

  // Levels of the priority property that a quorum queue obeys strictly.
  int quorum_priorities = 1;

  // A passive declaration needs the right to configure.
  bool passive_needs_configure = false;
};

VersionFacts facts_of(ServerVersion version);

// For basic.properties.priority of a quorum queue that obeys 32 levels, in which messages without it have 4: 0 is 4, and
// the order of bide's priorities (-100 to 100) is kept, though neighbours may become equal.
std::uint8_t server_priority(int priority);

// One sentence for each thing that an operator of this version should know; empty where nothing differs from 3.10.
std::vector<std::string> consequences_of(ServerVersion version);

}  // namespace bide::brokers::rabbitmq
