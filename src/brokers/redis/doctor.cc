#include "brokers/redis/doctor.h"

#include <charconv>
#include <chrono>
#include <cstdlib>

#include "brokers/redis/redis_store.h"
#include "core/duration.h"

namespace bide::brokers::redis {

namespace {

constexpr std::int64_t kLargeClockDifferenceMs = 1000;

std::int64_t whole(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void judge_durability(const ServerFacts& facts, const Settings& settings, std::vector<Finding>& findings) {
  if (info_value(facts.info, "aof_enabled") != "1") {
    findings.push_back({false, "the server writes no append-only file: when it ends, everything since its last snapshot is lost",
                        "CONFIG SET appendonly yes, CONFIG SET appendfsync always, and CONFIG REWRITE"});
  } else if (!facts.appendfsync) {
    findings.push_back({false, "CONFIG is not allowed: whether confirmed jobs are on disk cannot be seen",
                        "see that appendfsync is always; everysec can lose the last second or two"});
  } else if (*facts.appendfsync == "always") {
    findings.push_back({true, "what is confirmed is on disk (appendfsync always)"});
  } else if (settings.fsync) {
    findings.push_back({true, "what is confirmed is on disk (fsync=yes)"});
  } else if (*facts.appendfsync == "everysec") {
    findings.push_back({false, "a crash of the machine loses what was confirmed in the last second or two (appendfsync everysec)",
                        "CONFIG SET appendfsync always, or fsync=yes in the URL where the server has WAITAOF (7.2)"});
  } else {
    findings.push_back({false, "a crash of the machine loses what was confirmed in the last half minute (appendfsync no)",
                        "CONFIG SET appendfsync always"});
  }
  if (facts.no_appendfsync_on_rewrite == "yes") {
    findings.push_back({false, "nothing is synced while the append-only file is rewritten", "CONFIG SET no-appendfsync-on-rewrite no"});
  }
  for (const char* status : {"aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"}) {
    const std::string_view value = info_value(facts.info, status);
    if (!value.empty() && value != "ok") {
      findings.push_back({false, std::string(status) + " is " + std::string(value), "look into the server's log: is its disk full?"});
    }
  }
}

void judge_memory(const ServerFacts& facts, std::vector<Finding>& findings) {
  const std::string policy(info_value(facts.info, "maxmemory_policy"));
  const std::int64_t limit = whole(info_value(facts.info, "maxmemory"));
  const std::int64_t used = whole(info_value(facts.info, "used_memory"));
  if (policy.starts_with("allkeys")) {
    findings.push_back({false, "the server may drop jobs when its memory is full (maxmemory-policy " + policy + ")",
                        "CONFIG SET maxmemory-policy noeviction"});
  } else {
    findings.push_back({true, "jobs are not dropped when memory is full (maxmemory-policy " + policy + ")"});
  }
  if (limit == 0) {
    findings.push_back({false, "the server's memory has no limit: where the machine's runs out, the kernel kills the server",
                        "CONFIG SET maxmemory to less than the machine has; beyond it new jobs are refused, and the others still end"});
  } else if (used > limit / 10 * 9) {
    findings.push_back({false, "memory is " + std::to_string(used * 100 / limit) + "% full; at 100% new jobs are refused",
                        "run more workers, remove dead jobs, or raise maxmemory"});
  }
}

void judge_place(const ServerFacts& facts, const Settings& settings, std::vector<Finding>& findings) {
  if (whole(info_value(facts.info, "connected_slaves")) < static_cast<std::int64_t>(settings.replicas)) {
    findings.push_back({false, "the URL asks for " + std::to_string(settings.replicas) + " replicas, and the server has " +
                                   std::string(info_value(facts.info, "connected_slaves")) + ": nothing can be confirmed",
                        "start the replicas, or lower replicas= in the URL"});
  }
  if (info_value(facts.info, "cluster_enabled") == "1") {
    findings.push_back({false, "the server is a node of a cluster: bide does not follow its redirections",
                        "use a server of its own, with replicas and sentinels"});
  }
  if (std::abs(facts.clock_ahead_ms) > kLargeClockDifferenceMs) {
    const std::string difference = core::rough_duration(Milliseconds(std::abs(facts.clock_ahead_ms)));
    findings.push_back({false, "the server's clock is " + difference + (facts.clock_ahead_ms > 0 ? " ahead of" : " behind") +
                                   " ours; due times obey the server's",
                        "let both follow the same time server"});
  }
}

std::optional<std::string> setting_of(Connection& connection, const char* name) {
  const Result<Reply> reply = connection.run({"CONFIG", "GET", name});
  if (!reply || reply->items.size() != 2) return std::nullopt;
  return reply->items[1].text;
}

}  // namespace

std::vector<Finding> judge(const ServerFacts& facts, const Settings& settings) {
  std::vector<Finding> findings;
  judge_durability(facts, settings, findings);
  judge_memory(facts, findings);
  judge_place(facts, settings, findings);
  return findings;
}

Result<std::vector<Finding>> examine_server(const Settings& settings) {
  const Result<Host> host = find_server(settings);
  if (!host) return host.error();
  const auto connection = Connection::open(*host, settings.login, settings.patience);
  if (!connection) return connection.error();
  ServerFacts facts;
  const Result<Reply> info = (*connection)->run({"INFO"});
  if (!info) return info.error();
  facts.info = info->text;
  facts.appendfsync = setting_of(**connection, "appendfsync");
  facts.no_appendfsync_on_rewrite = setting_of(**connection, "no-appendfsync-on-rewrite");
  const Result<Reply> time = (*connection)->run({"TIME"});
  if (!time) return time.error();
  const std::int64_t theirs = whole(time->at(0).text) * 1000 + whole(time->at(1).text) / 1000;
  facts.clock_ahead_ms =
      theirs - std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()).time_since_epoch().count();
  return judge(facts, settings);
}

}  // namespace bide::brokers::redis
