#include "simulation/simulation.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace bide::simulation {

using support::Operation;

namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr std::int64_t kYear = 365 * 24 * kHour;

}  // namespace

Simulation::Simulation(std::uint64_t seed, Tally& tally, bool trace)
    : tally_(tally), trace_(trace), chance_(seed), engine_random_(chance_.next()), disk_(chance_.next()) {
  choose_options();
  disk_.on_operation([this](const support::OperationInfo& info) {
    if (info.operation == Operation::kCreate && info.path.find("/journal/") != std::string_view::npos) {
      tally_.add(Event::kSegmentsMade);
    }
    if (info.operation == Operation::kRemove && info.path.find("/journal/") != std::string_view::npos) {
      tally_.add(Event::kSegmentsRemoved);
    }
    if (info.operation == Operation::kRename) {
      tally_.add(Event::kSnapshots);
      if (in_tidy_ && tidied_in_step_ == 1) tally_.add(Event::kSnapshotsWithChanges);
    }
    if (crash_in_ != 0 && --crash_in_ == 0) {
      crashed_ = true;
      disk_.halt();
    }
  });
}

Simulation::~Simulation() {
  disk_.on_operation(nullptr);
  disk_.halt();
}

void Simulation::choose_options() {
  options_.directory = "/store";
  options_.segment_bytes = 16'384ull << below(3);
  options_.snapshot_bytes = 8'192ull << below(5);
  options_.done_limit = 2 + below(40);
  options_.cache_bytes = chance(0.3) ? 0 : below(32'768);
  options_.reserve_bytes = chance(0.5) ? 96 << 10 : 256 << 10;
  options_.max_jobs = 600;
  if (chance(0.7)) options_.piece = 1 + below(chance(0.5) ? 4 : 60);
  options_.result_retention = Milliseconds(chance(0.5) ? 3'600'000 : 20'000);
  const std::int64_t id_retentions[] = {20'000, 600'000, 3'600'000, 86'400'000};
  options_.id_retention = Milliseconds(id_retentions[below(4)]);
  options_.dead_retention = Milliseconds(chance(0.7) ? 0 : 600'000);
  if (chance(0.2)) disk_.refuse_allocate();
  if (chance(0.06)) options_.durability = chance(0.5) ? engine::Durability::kOs : engine::Durability::kNone;
}

void Simulation::violated(const std::string& text) const { throw Violation{text}; }

void Simulation::note(const char* what, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  for (const char* at = what; *at != 0; ++at) hash_ = (hash_ ^ static_cast<unsigned char>(*at)) * 0x100000001b3;
  for (const std::uint64_t word : {a, b, c}) {
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15;
    hash_ ^= hash_ >> 32;
  }
  if (trace_) {
    std::fprintf(stderr, "%4d %10" PRId64 ".%03" PRId64 " %-28s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", step_,
                 moment_.elapsed_us / 1000, moment_.elapsed_us % 1000, what, a, b, c);
  }
}

void Simulation::run(int steps) {
  now_.follow(clock_.now());
  now_.see_last_time(0);
  confirm();
  reopen();
  for (step_ = 1; step_ <= steps; ++step_) {
    tally_.add(Event::kSteps);
    one_step();
    note("step", disk_.operation_count(), ledger_->journal().end(), disk_.used_bytes());
  }
  // All must be well in the end, whatever was being tried.
  disarm();
  commit_all();
  close_cleanly();
  reopen();
}

void Simulation::one_step() {
  move_clocks();
  plan_faults();
  // A new segment can only begin between batches.
  if (committing_ && ledger_->journal().segment_full() && !finish_commit()) return;
  if (!begin()) return;
  // Many live jobs: fewer new ones.
  for (std::uint64_t left = below(5); left > 0 && !crashed_; --left) {
    if (committing_ && chance(0.1)) run_commit();
    if (!crashed_) request();
  }
  if (!expire()) return;
  if (committing_ && chance(0.1)) run_commit();
  if (!grant() || !commit() || !tidy()) return;
  check();
  if (chance(0.01)) {
    if (!commit_all()) return;
    close_cleanly();
    reopen();
  } else if (chance(0.012)) {
    crash();
    reopen();
  }
}

void Simulation::move_clocks() {
  const double which = chance_.chance(0.5) ? 0.0 : static_cast<double>(below(1000)) / 1000;
  std::int64_t by_us = 0;
  if (which < 0.4) {
    by_us = between(0, 50'000);
  } else if (which < 0.6) {
    const auto wake = ledger_->next_wake_us();
    // To the very moment, a little before, a little after.
    if (wake) by_us = std::clamp<std::int64_t>(*wake - clock_.now().elapsed_us + between(-2, 2), 0, 3 * 24 * kHour);
  } else if (which < 0.9) {
    by_us = between(0, 3 * kSecond);
  } else if (which < 0.97) {
    by_us = between(0, kHour);
  } else {
    by_us = between(0, 3 * 24 * kHour);
  }
  clock_.advance(std::chrono::microseconds(by_us));
  if (chance(committing_ ? 0.1 : 0.02)) step_wall_clock(false);
}

void Simulation::step_wall_clock(bool closed) {
  const std::int64_t sizes[] = {20'000, kSecond, kHour, kYear};
  const std::int64_t size = sizes[below(4)];
  const bool back = chance(0.5);
  if (back && size == kYear && clock_.now().wall_us < 40 * kYear) return;
  clock_.step_wall(std::chrono::microseconds(back ? -size : size));
  if (!back) clock_forward_us_ += size;
  note(back ? "clock back" : "clock forward", static_cast<std::uint64_t>(size));
  if (size < World::kClockStepUs) return;
  if (closed) tally_.add(Event::kClockStepsWhileClosed);
  if (back) tally_.add(Event::kClockStepsBack);
  if (size == kYear) tally_.add(Event::kClockStepsOfAYear);
}

void Simulation::plan_faults() {
  if (full_ && !room_again_ && step_ >= full_until_) {
    disk_.set_capacity(UINT64_MAX);
    clock_.advance(2000);
    room_again_ = true;
    note("disk has room");
  }
  if (crash_in_ == 0 && chance(0.03)) arm_crash(1 + below(15));
  if (!planned_ && chance(0.008)) {
    constexpr Operation kinds[] = {Operation::kWrite,    Operation::kWrite,  Operation::kSync,
                                   Operation::kSync,     Operation::kRead,   Operation::kRead,
                                   Operation::kAllocate, Operation::kCreate, Operation::kSyncDirectory,
                                   Operation::kRename,   Operation::kRemove, Operation::kTruncate};
    planned_ = support::PlannedFault{.operation = kinds[below(std::size(kinds))],
                                     .nth = 1 + below(6),
                                     .fault = chance(0.3) ? support::Fault::kShortWrite : support::Fault::kIoError};
    disk_.plan(*planned_);
    note("fault planned", static_cast<std::uint64_t>(planned_->operation), planned_->nth);
  }
  if (!full_ && ledger_->pressure().level == Pressure::Level::kOk && chance(0.008)) {
    full_ = reserve_expected_ = true;
    reserve_is_stuck_ = false;
    full_until_ = step_ + 3 + static_cast<int>(below(15));
    full_since_address_ = ledger_->journal().end();
    disk_.set_capacity(disk_.used_bytes() + below(64 << 10));
    note("disk full", disk_.used_bytes());
  }
}

bool Simulation::begin() {
  const platform::Instant instant = clock_.now();
  tidied_in_step_ = 0;
  const World before = now_;
  const bool stepped = now_.follow(instant);
  moment_ = now_.at(instant);
  if (Status begun = ledger_->begin(); !begun) return failed(begun.error(), "begin", false);
  if (crashed_) return failed({ErrorCode::kIoError, ""}, "begin", false);
  // One step after the other, and when there is room to write it down.
  const bool waits = stepped_ || (committing_ && committing_->stepped);
  if (stepped && (waits || (has_no_reserve() && ledger_->now_ms() != moment_.now_ms()))) {
    now_ = before;
    moment_ = now_.at(instant);
    if (waits) tally_.add(Event::kClockStepsDuringCommits);
  } else if (stepped) {
    tally_.add(Event::kClockStepsSeen);
    promised_ = stepped_ = true;
  }
  latest_now_ms_ = std::max(latest_now_ms_, moment_.now_ms());
  expect(ledger_->now_ms() == moment_.now_ms(), "the engine's time is not what it should be");
  observe_forgotten();
  if (ledger_->is_behind()) tally_.add(Event::kStepsBehind);
  now_.see_due(moment_, [this](const ModelJob& job, bool certain) {
    if (!ledger_->is_behind() && !certain) return true;
    const engine::Slot slot = ledger_->state().find(job.id);
    return slot != engine::kNoSlot && ledger_->state()[slot].entry_state() == engine::EntryState::kReady;
  });
  run_task();
  return true;
}

bool Simulation::expire() {
  if (crashed_) return true;  // In a request; the commit finds out.
  if (Status expired = ledger_->expire_leases(); !expired) return failed(expired.error(), "expire", false);
  if (crashed_) return failed({ErrorCode::kIoError, ""}, "expire", false);
  observe_leases();
  return true;
}

bool Simulation::tidy() {
  if (committing_) {
    if (ledger_->is_writing_snapshot() && chance(0.5)) {
      const auto more = ledger_->write_snapshot();
      if (!more || crashed_) return failed(more ? Error{ErrorCode::kIoError, ""} : more.error(), "tidy", false);
      tally_.add(Event::kSnapshotsDuringCommits);
      return true;
    }
    // What has been collected since then stays where it is: most of housekeeping may not come between.
    if (!ledger_->journal().batch_empty() || chance(0.5)) return true;
    if (!finish_commit()) return false;
    promised_ = false;  // Nothing has been written since, and what is to be synced, housekeeping syncs.
  }
  if (chance(0.02)) return tidy_to_quiet();
  in_tidy_ = true;
  for (std::uint64_t left = chance(0.6) ? 1 : below(6); left > 0; --left) {
    ++tidied_in_step_;
    const engine::journal::Address before = ledger_->journal().end();
    const auto more = ledger_->tidy(chance(0.5));
    // A crash between the two leaves files that nobody needs.
    if (!crashed_ && !chance(0.3)) ledger_->take_garbage()();
    if (!more || crashed_) {
      if (crashed_) tally_.add(Event::kCrashesInTidying);
      in_tidy_ = false;
      return failed(more ? Error{ErrorCode::kIoError, ""} : more.error(), "tidy", false);
    }
    if (*more && ledger_->journal().end() != before) tally_.add(Event::kCompactionMoves);
    notice_room();
  }
  in_tidy_ = false;
  return true;
}

// It is in housekeeping that the ledger finds out.
void Simulation::notice_room() {
  if (!room_again_) return;
  room_again_ = full_ = reserve_is_stuck_ = false;
  roomy_since_ = step_;
  tally_.add(Event::kDiskFullPassed);
}

bool Simulation::tidy_to_quiet() {
  for (int left = 2000;; --left) {
    expect(left > 0, "housekeeping never ends");
    const engine::journal::Address before = ledger_->journal().end();
    const auto more = ledger_->tidy();
    if (!crashed_) ledger_->take_garbage()();
    if (!more || crashed_) return failed(more ? Error{ErrorCode::kIoError, ""} : more.error(), "tidy", false);
    if (*more && ledger_->journal().end() != before) tally_.add(Event::kCompactionMoves);
    notice_room();
    if (!*more) break;
  }
  // What a full disk kept from being tidied waits for the next commit.
  if (full_ || planned_ || step_ - roomy_since_ < 10) return true;
  // The segment being written to may be longer than it should: a batch is never split, and a disk that was full may
  // have had no room for the next one.
  const std::uint64_t active = disk_.contents(ledger_->journal().segments().back().path).size();
  const std::uint64_t longer = active > options_.segment_bytes ? active - options_.segment_bytes : 0;
  const std::uint64_t live = ledger_->state().live_bytes().total();
  // Zeros are written ahead in the last moment.
  const std::uint64_t ahead =
      std::min<std::uint64_t>(options_.segment_bytes, engine::journal::JournalOptions().prewrite_bytes);
  const std::uint64_t budget = 2 * live + options_.segment_bytes + longer + ahead;
  if (trace_) {
    for (const auto& segment : ledger_->journal().segments()) {
      note("segment", segment.base, segment.end - segment.base, ledger_->state().live_bytes().of(segment.base));
    }
  }
  expect(ledger_->journal().disk_bytes() <= budget,
         "after tidying the journal has " + std::to_string(ledger_->journal().disk_bytes()) + " bytes for " +
             std::to_string(live) + " live ones and segments of " + std::to_string(options_.segment_bytes));
  tally_.add(Event::kQuietAndWithinBudget);
  return true;
}

}  // namespace bide::simulation
