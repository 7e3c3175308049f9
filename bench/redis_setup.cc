#include "bench/redis_setup.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "brokers/redis/connection.h"
#include "brokers/redis/redis_store.h"
#include "brokers/redis/redis_url.h"

namespace bide::bench {

namespace {

using namespace brokers::redis;
using std::chrono::steady_clock;

constexpr std::string_view kRedisPrefix = "bide-bench";
constexpr std::string_view kBareScript =
    "redis.call('SET', KEYS[1] .. ARGV[1], ARGV[2]) redis.call('ZADD', KEYS[1] .. 'bare', ARGV[1], ARGV[1]) return 1";
constexpr std::uint64_t kPipelined = 256;

Result<std::unique_ptr<Connection>> connect_to(const Settings& settings) {
  const Result<Host> host = find_server(settings);
  if (!host) return host.error();
  return Connection::open(*host, settings.login, settings.patience);
}

// Removes every key of the prefix, a thousand at a time.
Status remove_keys(const Settings& settings) {
  const auto connection = connect_to(settings);
  if (!connection) return connection.error();
  std::string cursor = "0";
  do {
    const Result<Reply> page =
        (*connection)->run({"SCAN", cursor, "MATCH", "{" + std::string(kRedisPrefix) + "}:*", "COUNT", "1000"});
    if (!page) return page.error();
    cursor = page->at(0).text;
    std::vector<std::string_view> command = {"UNLINK"};
    for (const Reply& key : page->at(1).items) command.push_back(key.text);
    if (command.size() == 1) continue;
    if (const Result<Reply> gone = (*connection)->run(command); !gone) return gone.error();
  } while (cursor != "0");
  return {};
}

class BareScripts {
 public:
  static Result<std::shared_ptr<BareScripts>> open(const Settings& settings) {
    auto connection = connect_to(settings);
    if (!connection) return connection.error();
    Result<Reply> digest = (*connection)->run({"SCRIPT", "LOAD", kBareScript});
    if (!digest) return digest.error();
    return std::shared_ptr<BareScripts>(new BareScripts(std::move(*connection), std::move(digest->text)));
  }

  // Jobs a second.
  Result<double> run(std::uint64_t jobs) {
    const auto start = steady_clock::now();
    for (std::uint64_t sent = 0; sent < jobs;) {
      const std::uint64_t now = std::min(kPipelined, jobs - sent);
      for (std::uint64_t i = 0; i < now; ++i) append();
      for (std::uint64_t i = 0; i < now; ++i) {
        if (Status answered = next(); !answered) return answered.error();
      }
      sent += now;
    }
    return static_cast<double>(jobs) / std::chrono::duration<double>(steady_clock::now() - start).count();
  }

  Result<std::vector<double>> single_us(int jobs) {
    std::vector<double> times;
    for (int i = 0; i < jobs; ++i) {
      const auto start = steady_clock::now();
      append();
      if (Status answered = next(); !answered) return answered.error();
      times.push_back(std::chrono::duration<double, std::micro>(steady_clock::now() - start).count());
    }
    return times;
  }

 private:
  BareScripts(std::unique_ptr<Connection> connection, std::string digest)
      : connection_(std::move(connection)), digest_(std::move(digest)) {}

  void append() { connection_->append({"EVALSHA", digest_, "1", key_, std::to_string(++last_), body_}); }
  Status next() {
    const Result<Reply> reply = connection_->next_reply();
    if (!reply) return reply.error();
    return reply->is_error() ? error_of(*reply) : Status();
  }

  const std::unique_ptr<Connection> connection_;
  const std::string digest_;
  const std::string key_ = "{" + std::string(kRedisPrefix) + "}:bare:";
  const std::string body_ = std::string(200, 'x');
  std::uint64_t last_ = 0;
};

}  // namespace

Result<BrokerSetup> redis_setup(std::string_view url, std::string_view rest, bool sentinel) {
  const Result<Settings> settings = parse_redis_url(rest, sentinel);
  if (!settings) return settings.error();
  BrokerSetup setup;
  // The last one of two settings counts.
  setup.url = std::string(url) + (url.find('?') == std::string_view::npos ? "?" : "&") + "prefix=" + std::string(kRedisPrefix);
  const auto bare = BareScripts::open(*settings);
  if (!bare) return bare.error();
  setup.bare_enqueue_rate = [bare = *bare](std::uint64_t jobs) { return bare->run(jobs); };
  setup.bare_single_us = [bare = *bare](int jobs) { return bare->single_us(jobs); };
  setup.clean_up = [settings = *settings](const std::vector<std::string>&) { return remove_keys(settings); };
  return setup;
}

}  // namespace bide::bench
