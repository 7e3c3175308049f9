// Topology: the exchanges, queues and bindings that bide wants on the server, as data. Declaring, `bide rabbitmq plan`,
// `apply`, `doctor` and `gc` all read the same description.
//
//   client ------------------------(default exchange)------------------+
//      |                                                               v
//      +--> P.delay.3 --> P.delay.3.1 --> P.delay.2 ... --> P.due --> P.queue.NAME --> worker
//              |  (exchange)  (queue, waits)                   |                         |
//              +---(no such key: alternate exchange)-------> P.lost (exchange and queue) |
//                                                                      P.dead.NAME <-----+
//   cancel, pause ... --> P.notices (fanout) --> P.notices (stream), and a queue of its own for each worker
//
// P is the prefix. Everything is durable; nothing expires by itself.
//
// Queues of ready jobs have no limit on the server: one that refused what is due would hold up the delay queue behind
// it, which others share. The publisher bounds what is offered (backlogs.h). All others have one, and refuse.

#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "brokers/rabbitmq/amqp_message.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/delay_path.h"

namespace bide::brokers::rabbitmq {

struct ExchangeSpec {
  std::string name = {};
  std::string type = "direct";
  FieldTable arguments = {};
  bool foreign = false;  // Of another system: when it is there in another form, it is used as it is.
  bool durable = true;
};

struct QueueSpec {
  std::string name = {};
  FieldTable arguments = {};
  // Limits: a queue that is there with other values of these is used as it is. The server does not let them be changed,
  // and nothing is lost by them.
  std::vector<std::string> may_differ = {};
  // Of another system: every argument may differ, except those above that decide where its dead letters go.
  bool foreign = false;
  bool durable = true;

  bool may_have_another(const std::string& argument) const;
};

struct BindingSpec {
  std::string source = {};  // An exchange.
  std::string destination = {};
  std::string key = {};
  bool to_exchange = false;  // The destination is an exchange, not a queue.
};

struct Topology {
  std::vector<ExchangeSpec> exchanges = {};
  std::vector<QueueSpec> queues = {};
  std::vector<BindingSpec> bindings = {};

  void add(const Topology& other);  // What is there already is not added again.
};

// The names of everything, for one prefix.
class Names {
 public:
  explicit Names(std::string prefix) : prefix_(std::move(prefix)) {}

  const std::string& prefix() const { return prefix_; }
  std::string queue(std::string_view name) const { return prefix_ + ".queue." + std::string(name); }
  std::string dead(std::string_view name) const { return prefix_ + ".dead." + std::string(name); }
  std::string visit(std::string_view name) const { return prefix_ + ".visit." + std::string(name); }  // A lock.
  // Where replies arrive. Workers reply to queues of this form only: whoever may enqueue must not make them write elsewhere.
  std::string reply(std::string_view name) const { return prefix_ + ".reply." + std::string(name); }
  std::string due() const { return prefix_ + ".due"; }
  std::string lost() const { return prefix_ + ".lost"; }
  std::string notices() const { return prefix_ + ".notices"; }
  std::string delay_exchange(int level) const { return prefix_ + ".delay." + std::to_string(level); }
  std::string delay_queue(int level, int digit) const { return delay_exchange(level) + "." + std::to_string(digit); }
  std::string lap(int number) const { return prefix_ + ".lap." + std::to_string(number); }

 private:
  std::string prefix_;
};

// Needed by everybody, whatever the queues: due, lost, notices.
Topology foundation(const Settings& settings);
// The queue in which ready jobs wait, and its binding to `due`.
Topology ready_queue(const Settings& settings, std::string_view name);
// The queue in which dead jobs of that queue wait.
Topology dead_queue(const Settings& settings, std::string_view name);
// One hop of a delay: the queue, the exchanges on both sides of it and the binding between.
Topology delay_hop(const Settings& settings, const DelayHop& hop);
// The way out of a level: "n>!".
Topology delay_exit(const Settings& settings, int level);
// One lap of a delay of many years.
Topology delay_lap(const Settings& settings, int number);
// Everything that a message with this path needs.
Topology for_path(const Settings& settings, const DelayPath& path);

// Where a message is published so that it reaches `destination` (a queue bound to `due`) after the path.
struct Route {
  std::string exchange = {};  // Empty: the default exchange.
  std::string key = {};
  FieldList cc = {};  // Empty: no CC header.
};
Route route_of(const Names& names, const DelayPath& path, const std::string& destination);

}  // namespace bide::brokers::rabbitmq
