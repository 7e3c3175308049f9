// EngineOptions: where the embedded engine keeps its jobs and how it behaves. Every limit is here.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "bide/job.h"
#include "bide/result.h"
#include "core/time_zones.h"
#include "engine/journal/journal.h"
#include "platform/clock.h"
#include "platform/disk.h"
#include "platform/random.h"

namespace bide::engine {

using journal::Durability;

// A place in the store that cannot be read, as operators are told of it.
struct Damage {
  std::string file;
  std::uint64_t offset = 0;
  std::string text;  // One line, with file, offset and consequence.
};

struct EngineOptions {
  std::string directory;
  Durability durability = Durability::kFsync;

  Milliseconds result_retention{3'600'000};  // Done jobs and their results are kept for this long ...
  std::uint64_t done_limit = 100'000;        // ... but at most this many.
  // Of them, these many bytes of jobs as they were enqueued (body, headers, rules) are kept too, the newest ones.
  std::uint64_t done_bytes = 64ull << 20;
  Milliseconds dead_retention{0};            // 0: dead jobs are kept until they are deleted.
  // The ids of done jobs and the tokens of their leases are remembered for this long, apart from results. 0: not at all.
  Milliseconds id_retention{3'600'000};
  std::uint64_t id_bytes = 1ull << 30;       // Memory for them, at most; the oldest are forgotten before it takes more.
  std::uint32_t max_crashes = 3;             // A job that killed its worker so often is dead.

  std::uint64_t max_jobs = 200'000'000;         // Beyond it enqueue is refused. Each costs at most 64 bytes of memory.
  std::uint64_t queued_bytes = 64ull << 20;     // Enqueues waiting for the engine; beyond it they are refused.
  std::uint64_t call_bytes = 1ull << 30;        // Of one enqueue or settle; beyond it the call is refused.
  std::uint64_t cache_bytes = 64ull << 20;      // Ready jobs kept whole in memory; others are read back.
  std::uint64_t reserve_bytes = 16ull << 20;    // Kept free for settling when the disk is full.
  std::uint64_t segment_bytes = 64ull << 20;
  std::uint64_t snapshot_bytes = 256ull << 20;  // A snapshot is due when the journal has grown by so much, or more.

  // Called once, when the disk failed and nothing more can be confirmed. Default: one line on stderr, then exit 74.
  std::function<void(const Error&)> on_fatal = {};

  // Called once for each place of the store that cannot be read, for the first hundred, while everything else goes on.
  // On a thread of the engine; must not block. Default: one line on stderr.
  std::function<void(const Damage&)> on_damage = {};

  // Told how long each batch took to be written and synced. On a thread of the engine; must not block.
  std::function<void(std::chrono::microseconds)> on_commit = {};

  // Work that concerns many jobs is done in pieces of this many, with requests answered in between.
  std::size_t piece = 32'768;

  // Where time zones of schedules come from. Empty: the system's tz database.
  core::ZoneData zones = {};

  // For tests; null means the real thing.
  platform::Disk* disk = nullptr;
  platform::Clock* clock = nullptr;
  platform::Random* random = nullptr;
};

}  // namespace bide::engine
