// Settings: what an amqp:// or amqps:// URL says.
//
//   amqp://user:password@host:5672/vhost?prefix=shop&window=512
//   amqps://host1,host2:5671,host3/%2F?ca=/etc/ssl/ca.pem
//
// Several hosts, separated by commas, are the nodes of one cluster: whichever answers is used, and the next one when it
// goes away. Without a path the virtual host is "/"; "/%2F" means the same. Parts may be escaped with %XX.
// The password never appears in an error, and nothing here prints it.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "brokers/rabbitmq/delay_path.h"

namespace bide::brokers::rabbitmq {

struct Host {
  std::string name = "127.0.0.1";
  int port = 5672;

  friend bool operator==(const Host&, const Host&) = default;
};

struct Tls {
  bool enabled = false;  // amqps.
  std::string ca = {};   // File; empty: the system's.
  std::string certificate = {};
  std::string key = {};
  bool verify = true;  // Chain and host name.
};

enum class QueueType : std::uint8_t { kQuorum, kClassic };

struct Settings {
  // Where.
  std::vector<Host> hosts = {Host{}};
  std::string user = "guest";
  std::string password = "guest";
  std::string vhost = "/";
  Tls tls = {};
  Milliseconds heartbeat{10'000};
  Milliseconds patience{10'000};  // How long a call waits for a server that is away or refuses to take more.

  Milliseconds consumer_timeout = std::chrono::minutes(30);  // What the server is set to.

  // What is declared there.
  std::string prefix = "bide";  // Of every exchange and queue.
  bool declare = true;          // declare=no: everything is there already (`bide rabbitmq apply`).
  QueueType queue_type = QueueType::kQuorum;
  std::uint64_t max_length = 10'000'000;  // Jobs waiting in one queue; more are refused. 0: no limit.
  std::uint32_t delivery_limit = 100;     // The server's last resort against jobs that kill; bide's own comes first.
  DelayShape delay = {};                  // radix, precision.
  Milliseconds dead_retention{0};         // 0: dead jobs are kept until somebody removes them.
  bool notices = true;                    // cancel=no: no cancelling, pausing or putting off, and no stream for it.
  Milliseconds notice_retention = std::chrono::hours(24 * 366);

  // How.
  std::uint32_t window = 1024;  // Publishes not yet confirmed, at most.
  // Bytes of the longest body that the server takes; 0: what is usual for its version.
  std::uint64_t max_message_size = 0;

  // A foreign layout instead of bide's own: "", "sneakers", "async-worker" or "comq".
  std::string compat = {};
  std::vector<std::pair<std::string, std::string>> compat_options = {};  // What the named mode understands.
};

// `rest` is everything behind the colon of the scheme; `tls` says whether that was amqps.
//
// kInvalidArgument: what is wrong, where, and what is allowed; an unknown option with the nearest known one.
Result<Settings> parse_amqp_url(std::string_view rest, bool tls);

// "host1:5672, host2:5672, virtual host shop": for messages, without credentials.
std::string place_of(const Settings& settings);

}  // namespace bide::brokers::rabbitmq
