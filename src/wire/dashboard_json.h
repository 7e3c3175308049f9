// What the dashboard is told beyond jobs and queues, as JSON. Written only.
//
//   stats         GET /v1/stats          steps of a window as columns, and sums for each queue and kind
//   workers       GET /v1/workers
//   dead groups   GET /v1/dead/groups    dead jobs of the same kind and error, numbers and the like folded
//   session       GET /v1/session        who asks, and what they may do
//   about         GET /v1/about

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bide/dead_groups.h"
#include "bide/job.h"
#include "bide/job_id.h"

namespace bide::wire {

struct StatsSum {
  std::string name = {};
  std::uint64_t enqueued = 0;
  std::uint64_t started = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t dead = 0;
  std::optional<double> p50 = {};  // Lateness, in milliseconds.
  std::optional<double> p95 = {};
  std::optional<double> p99 = {};
};

// One value for each step.
struct StatsColumns {
  std::vector<std::uint32_t> enqueued = {};
  std::vector<std::uint32_t> started = {};
  std::vector<std::uint32_t> done = {};
  std::vector<std::uint32_t> failed = {};
  std::vector<std::uint32_t> dead = {};
  std::vector<std::optional<double>> p50 = {};
  std::vector<std::optional<double>> p95 = {};
  std::vector<std::optional<double>> p99 = {};
};

struct Stats {
  Time from = {};
  Milliseconds step{0};
  StatsColumns steps = {};
  StatsSum total = {};
  std::vector<StatsSum> queues = {};
  std::vector<StatsSum> kinds = {};
};

struct WorkerInfo {
  std::string name = {};
  std::vector<std::string> queues = {};
  bool connected = false;
  std::int64_t running = 0;
  std::uint64_t started = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  Time since = {};
  Time last_start = {};
};

struct DeadGroupPage {
  std::vector<JobId> ids = {};
  std::optional<std::string> next = {};
};

struct SessionInfo {
  bool signed_in = false;
  std::string name = {};                 // Of the token; "local", "link".
  std::vector<std::string> scopes = {};
  std::vector<std::string> queues = {};  // Only these; empty: all.
  bool by_cookie = false;
};

struct About {
  std::string version = {};
  std::string broker = {};      // Its URL, without secrets.
  std::string durability = {};  // "fsync", "os", "none"; empty: what the broker has.
  Time started = {};
};

std::string stats_json(const Stats& stats);
std::string workers_json(const std::vector<WorkerInfo>& workers);
std::string dead_groups_json(const DeadGroups& groups);
std::string dead_group_page_json(const DeadGroupPage& page);
std::string session_json(const SessionInfo& session);
std::string about_json(const About& about);

}  // namespace bide::wire
