// Simulation, the faults: how a process and its disk end, and what must be there afterwards.

#include <algorithm>
#include <set>

#include "simulation/simulation.h"

namespace bide::simulation {

using engine::kNoSlot;
using support::Operation;
using support::Survival;

void Simulation::arm_crash(std::uint64_t operations) { crash_in_ = operations; }

// Whatever was planned has happened.
void Simulation::count_fault() {
  faults_seen_ = disk_.faults_fired();
  if (!planned_) return;
  clock_unsure_ = true;  // It may have been the writing of the clock's file that failed.
  leases_wait_until_ms_ = moment_.elapsed_ms() + 1100;
  reserve_expected_ = false;  // It may have been the deletion of the reserve that failed.
  reserve_is_stuck_ = reserve_is_stuck_ || planned_->operation == Operation::kRemove;
  switch (planned_->operation) {
    case Operation::kWrite:
      tally_.add(planned_->fault == support::Fault::kShortWrite ? Event::kShortWrites : Event::kFailedWrites);
      break;
    case Operation::kSync:
      tally_.add(Event::kFailedSyncs);
      break;
    case Operation::kSyncDirectory:
      tally_.add(Event::kFailedDirectorySyncs);
      break;
    case Operation::kRead:
      tally_.add(Event::kFailedReads);
      break;
    default:
      tally_.add(Event::kOtherFailures);
      break;
  }
  planned_.reset();
}

void Simulation::disarm() {
  crash_in_ = 0;
  if (disk_.faults_fired() != faults_seen_) count_fault();
  if (planned_) {
    // It stays planned on the disk; let it fire on nobody.
    while (disk_.faults_outstanding() > 0) {
      auto probe = disk_.open("/probe", platform::OpenMode::kCreate);
      char byte = 0;
      switch (planned_->operation) {
        case Operation::kRead:
          if (probe) (void)(*probe)->read(0, &byte, 1);
          break;
        case Operation::kWrite:
          if (probe) (void)(*probe)->write(0, "x");
          break;
        case Operation::kSync:
          if (probe) (void)(*probe)->sync();
          break;
        case Operation::kAllocate:
          if (probe) (void)(*probe)->allocate(0, 1);
          break;
        case Operation::kTruncate:
          if (probe) (void)(*probe)->truncate(0);
          break;
        case Operation::kRename:
          (void)disk_.rename("/probe", "/probe");
          break;
        case Operation::kSyncDirectory:
          (void)disk_.sync_directory("/");
          break;
        case Operation::kMakeDirectory:
          (void)disk_.make_directory("/probe directory");
          break;
        case Operation::kCreate:
        case Operation::kRemove:
          break;
      }
      probe = Error{ErrorCode::kNotFound, ""};
      (void)disk_.remove("/probe");
    }
    planned_.reset();
  }
  faults_seen_ = disk_.faults_fired();
}

bool Simulation::failed(const Error& error, const char* where, bool is_commit) {
  if (crashed_) {
    note("crashed in", static_cast<std::uint64_t>(where[0]), disk_.operation_count());
    crash();
    reopen();
    return false;
  }
  const bool fault_fired = disk_.faults_fired() != faults_seen_;
  expect(fault_fired && planned_, std::string(where) + "() failed for no reason: " + error.message);
  note("failed in", static_cast<std::uint64_t>(where[0]), static_cast<std::uint64_t>(planned_->operation));
  tally_.add(Event::kFatalFailures);
  const bool is_final = planned_->operation == Operation::kWrite || planned_->operation == Operation::kSync;
  if (is_commit && is_final) {
    // Nothing may be confirmed any more, even if the disk seems to be well again.
    disarm();
    (void)ledger_->enqueue(engine::EnqueueBatch::of({make_job(false).job}, {}));
    expect(!ledger_->commit(), "something was confirmed after a failed write or sync");
    tally_.add(Event::kNothingConfirmedAfterFailure);
  }
  crash();
  reopen();
  return false;
}

void Simulation::crash() {
  disk_.halt();
  if (committing_) {
    tally_.add(Event::kCrashesDuringCommits);
    (void)ledger_->end_commit(committing_->outcome ? *committing_->outcome : committing_->run());
    committing_.reset();
  }
  ledger_.reset();
  const bool can_lose_power = options_.durability == engine::Durability::kFsync;
  // A file system that fails to sync a directory is out of order until it is mounted again.
  const bool must_lose_power = can_lose_power && planned_ && planned_->operation == Operation::kSyncDirectory &&
                               disk_.faults_fired() != faults_seen_;
  const Survival survival = !can_lose_power || (!must_lose_power && chance(0.3)) ? Survival::kEverything
                            : chance(0.3)                                        ? Survival::kNothing
                                                                                 : Survival::kChance;
  disk_.crash({.unsynced = survival});
  if (disk_.faults_fired() != faults_seen_) count_fault();
  crashed_ = false;
  crash_in_ = 0;
  if (survival != Survival::kEverything) {
    power_lost_ = true;
    clock_.reboot();
  }
  // Space that was given back and not synced is taken again, and perhaps that was the last.
  reserve_expected_ = false;
  tally_.add(survival == Survival::kEverything ? Event::kCrashesKeepingAll
             : survival == Survival::kNothing  ? Event::kCrashesLosingAll
                                               : Event::kCrashesTearing);
  note("crash", static_cast<std::uint64_t>(survival), disk_.fingerprint(), disk_.used_bytes());
}

void Simulation::close_cleanly() {
  note("close");
  std::vector<World> closing = {now_};
  for (const engine::Running& running : ledger_->state().leases().places()) {
    if (running.slot == kNoSlot) continue;
    closing.push_back(closing.back());
    closing.back().close(ledger_->state()[running.slot].id, moment_);
  }
  const World& closed = closing.back();
  const std::uint64_t fired = disk_.faults_fired();
  if (crash_in_ == 0 && chance(0.3) && step_ > 0) arm_crash(1 + below(6));
  ledger_.reset();
  crash_in_ = 0;
  if (crashed_) {
    tally_.add(Event::kCrashesWhileClosing);
    timeline_.push_back({closed, false});
    crash();
    return;
  }
  if (disk_.faults_fired() != fired) {
    timeline_.push_back({closed, false});
  } else if (has_no_reserve()) {
    // One after another was given back, in this order, as long as there was room.
    for (const auto& world : closing) timeline_.push_back({world, false});
  } else {
    now_ = closed;
    confirm();
    tally_.add(Event::kCleanCloses);
    flip_bits();
    if (chance(0.3)) crash();  // Nothing of a closed store may be lost by that.
  }
}

// Damage to what was synced is refused, or does no harm; nothing is lost in silence.
void Simulation::flip_bits() {
  if (options_.durability != engine::Durability::kFsync) return;
  for (int left = 3; left > 0; --left) {
    const auto image = disk_.clone();
    std::vector<std::string> files;
    for (const std::string& path : image->files()) {
      if ((path.find("/journal/") != std::string::npos || path.find("/snapshot-") != std::string::npos ||
           path.find("/ids/") != std::string::npos) &&
          !image->contents(path).empty()) {
        files.push_back(path);
      }
    }
    if (files.empty()) return;
    const std::string& path = files[below(files.size())];
    const std::uint64_t offset = below(image->contents(path).size());
    image->flip_bit(path, offset, static_cast<unsigned>(below(8)));
    note("flip", offset);
    support::SeededRandom random(1);
    auto opened = engine::Ledger::open(engine_options(*image, random));
    if (!opened) {
      const Error& error = opened.error();
      expect(error.code == ErrorCode::kDamaged || error.code == ErrorCode::kNewerVersion,
             "a flipped bit in " + path + " at " + std::to_string(offset) + " is said to be " +
                 std::string(to_string(error.code)) + ": " + error.message);
      expect(error.message.find('/') != std::string::npos, "damage is reported without a file: " + error.message);
      tally_.add(Event::kFlipsRefused);
      continue;
    }
    World world = now_;
    learn_ids(**opened, world);
    // With the end of the journal goes what the clock's file was written for.
    expect((*opened)->open_report().elapsed_known || clock_unsure_ || !(*opened)->open_report().torn_tails.empty(),
           "the time since the last opening is not known");
    if ((*opened)->open_report().elapsed_known) {
      world.follow(clock_.now());
    } else {
      world.believe_wall(clock_.now());
    }
    world.reopen(clock_.now(), options_.max_crashes);
    learn_waits(**opened, world);
    CompareOptions compare = compare_options();
    compare.damage_may_be_reported = true;
    // The engine's time may be a little ahead of the wall clock.
    compare.latest_now_ms = std::max({latest_now_ms_, clock_.now().wall_us / 1000, (*opened)->now_ms()});
    Reading reading(**opened);
    if (const auto found = difference(reading, world, world.at(clock_.now()), compare)) {
      violated("a flipped bit in " + path + " at " + std::to_string(offset) + " was not noticed: " + *found);
    }
    tally_.add(Event::kFlipsHarmless);
  }
}

engine::EngineOptions Simulation::engine_options(support::SimulatedDisk& disk, platform::Random& random) {
  engine::EngineOptions options = options_;
  options.disk = &disk;
  options.clock = &clock_;
  options.random = &random;
  return options;
}

void Simulation::reopen() {
  tasks_.clear();
  finished_tasks_.clear();
  granted_.clear();
  callbacks_.clear();
  promised_ = stepped_ = false;
  subscribed_.clear();
  if (full_ && !room_again_ && !planned_ && chance(0.3)) {
    // Somebody has deleted the reserve, and others have filled the disk to the last page.
    (void)disk_.remove("/store/reserve");
    disk_.set_capacity(disk_.used_bytes());
    reserve_expected_ = false;
  }
  opening_ = 0;
  do {
    if (chance(0.3)) clock_.advance(between(0, 5000));
    if (chance(0.05)) clock_.advance(between(0, 2 * 86'400'000));
    if (step_ > 0 && chance(0.1)) step_wall_clock(true);
    ++opening_;
  } while (!try_to_open());
  adopt_what_survived();
}

bool Simulation::try_to_open() {
  const platform::Instant instant = clock_.now();
  // Of how many it finds room to charge is only known when it has opened.
  if (opening_ <= 3 && !has_no_reserve() && step_ > 0 && chance(0.25)) arm_crash(1 + below(12));
  const std::uint64_t fired = disk_.faults_fired();
  auto opened = engine::Ledger::open(engine_options(disk_, engine_random_));
  crash_in_ = 0;
  const bool fault_fired = disk_.faults_fired() != fired;
  if (opened && !crashed_) {
    // All of it is going to be read, by us.
    if (fault_fired || (planned_ && planned_->operation == Operation::kRead)) disarm();
    ledger_ = std::move(*opened);
    fault_while_opening_ = fault_fired;
    return true;
  }
  if (!opened && !crashed_ && !fault_fired) violated("the store cannot be opened: " + opened.error().message);
  note("opening failed", crashed_, fault_fired);
  if (fault_fired) {
    expect(planned_.has_value(), "a fault fired that was not planned");
    tally_.add(Event::kFatalFailures);
  }
  if (crashed_) tally_.add(Event::kCrashesWhileOpening);
  disk_.halt();
  opened = Error{ErrorCode::kIoError, ""};
  // What it did when it opened may have become durable, or not.
  const std::size_t before = timeline_.size();
  for (std::size_t i = 0; i < before; ++i) {
    if (!power_lost_) {
      World world = timeline_[i].world;
      world.follow(instant);
      timeline_.push_back({world, false});
      world.reopen(instant, options_.max_crashes);
      timeline_.push_back({std::move(world), false});
    }
    if (power_lost_ || clock_unsure_ || fault_fired) {
      World world = timeline_[i].world;
      world.believe_wall(instant);
      world.reopen(instant, options_.max_crashes);
      timeline_.push_back({std::move(world), false});
    }
  }
  crash();
  return false;
}

namespace {

// A dead job may be forgotten after a while, but not in the opening in which it died, however the clock was set.
std::optional<std::uint64_t> crashed_and_gone(const World& before, const World& after) {
  for (const auto& [tag, job] : before.jobs()) {
    const bool crashed = job->phase == Phase::kRunning && !job->outlives_process && !job->cancel_requested;
    if (crashed && after.find(tag) == nullptr) return tag;
  }
  return std::nullopt;
}

// Those that a crash is charged to when this is opened.
bool is_charged(const ModelJob& job, const std::set<JobId>& left) {
  return job.phase == Phase::kRunning && !job.outlives_process && !job.cancel_requested && !left.contains(job.id);
}

std::uint64_t count_charged(const World& world, const std::set<JobId>& left) {
  std::uint64_t charged = 0;
  for (const auto& [tag, job] : world.jobs()) charged += is_charged(*job, left) ? 1 : 0;
  return charged;
}

}  // namespace

void Simulation::adopt_what_survived() {
  const platform::Instant instant = clock_.now();
  latest_now_ms_ = std::max(latest_now_ms_, instant.wall_us / 1000);
  std::size_t oldest = 0;
  if (!power_lost_) {
    for (std::size_t i = 0; i < timeline_.size(); ++i) {
      if (timeline_[i].written) oldest = i;
    }
  }
  const bool known = ledger_->open_report().elapsed_known;
  expect(known || power_lost_ || clock_unsure_, "the time since the last opening is not known");
  expect(!known || !power_lost_, "the time since the last opening is known although the machine was started anew");
  if (known) tally_.add(Event::kTimeKnownOverARestart);
  latest_now_ms_ = std::max(latest_now_ms_, ledger_->now_ms());  // May be a little ahead of the wall clock.
  std::optional<std::size_t> survived;
  // Of every state that it may have been: a crash that was charged in the step that was lost is charged now, at the same time.
  std::set<std::uint64_t> may_be_charged;
  std::string differences;
  World found;
  Reading reading(*ledger_);
  std::set<JobId> left;
  for (const engine::Running& running : ledger_->state().leases().places()) {
    if (running.slot != kNoSlot && running.crashed) left.insert(ledger_->state()[running.slot].id);
  }
  expect(left.empty() || has_no_reserve(), "a crash was not charged although there was room");
  if (full_) tally_.add(has_no_reserve() ? Event::kOpenedWithoutReserve : Event::kOpenedOnAFullDisk);
  for (std::size_t i = timeline_.size(); i-- > oldest;) {
    World world = timeline_[i].world;
    learn_ids(*ledger_, world);
    // In the same boot of the machine it is known how much time has passed, and what waits moves with the wall clock alone.
    if (known) {
      World followed = world;
      followed.follow(instant);
      // A full disk: the step is followed when there is room to write it down.
      const bool put_off = has_no_reserve() && followed.at(instant).now_ms() != ledger_->now_ms();
      if (!put_off) world = std::move(followed);
      if (world.at(instant).now_ms() != ledger_->now_ms()) {
        differences += "\n    [" + std::to_string(i) + "] the engine's time is not what it should be";
        continue;
      }
    }
    if (!known) {
      const bool stays = has_no_reserve() && ledger_->now_ms() != instant.wall_us / 1000;
      stays ? world.stay(instant) : world.believe_wall(instant);
      if (world.at(instant).now_ms() != ledger_->now_ms()) {
        differences += "\n    [" + std::to_string(i) + "] the engine's time is not what it should be";
        continue;
      }
    }
    world.reopen(instant, options_.max_crashes, left);
    if (world.last_time_ms() != ledger_->state().last_time_ms()) {
      differences += "\n    [" + std::to_string(i) + "] the last time written is " + std::to_string(ledger_->state().last_time_ms()) +
                     ", not " + std::to_string(world.last_time_ms());
      continue;
    }
    learn_waits(*ledger_, world);
    if (const auto differs = difference(reading, world, world.at(instant), compare_options())) {
      differences += "\n    [" + std::to_string(i) + "] " + *differs;
    } else if (const auto gone = crashed_and_gone(timeline_[i].world, world)) {
      differences += "\n    [" + std::to_string(i) + "] job " + std::to_string(*gone) + " died just now and is not there";
    } else if (!survived) {
      survived = i;
      found = std::move(world);
      may_be_charged.insert(count_charged(timeline_[i].world, left));
    } else {
      may_be_charged.insert(count_charged(timeline_[i].world, left));
      for (const auto& [tag, job] : world.jobs()) {
        const ModelJob* other = found.find(tag);
        const bool ended_alike =
            other == nullptr || (other->ended_token == job->ended_token && other->ended_as == job->ended_as);
        if (!ended_alike) found.change(tag).ended_token_known = false;
      }
    }
  }
  expect(survived.has_value(), "what is there after opening is none of the " +
                                   std::to_string(timeline_.size() - oldest) + " states that it may be:" + differences);
  if (timeline_.size() > 1) tally_.add(*survived > 0 ? Event::kUnconfirmedKept : Event::kUnconfirmedLost);
  note("opened", *survived, timeline_.size(), disk_.used_bytes());

  for (const auto& [tag, job] : timeline_[*survived].world.jobs()) {
    if (job->phase == Phase::kRunning && job->outlives_process) tally_.add(Event::kLeasesThatOutlived);
    if (job->phase == Phase::kRunning && !job->outlives_process && job->cancel_requested) tally_.add(Event::kCancelledAndCrashed);
    if (!is_charged(*job, left)) continue;
    const ModelJob* after = found.find(tag);
    if (after->phase == Phase::kDead && after->dead_reason == DeadReason::kPoison) tally_.add(Event::kPoisoned);
  }
  const engine::OpenReport& report = ledger_->open_report();
  // After an opening that failed it may have been then or now.
  expect(may_be_charged.contains(report.crashed_attempts) || opening_ > 1, "another number of attempts was charged");
  tally_.add(Event::kAttemptsCharged, count_charged(timeline_[*survived].world, left));
  tally_.add(Event::kTornTails, report.torn_tails.size());
  const AuditReport audit = ledger_->audit();
  expect(audit.ok(), audit.ok() ? "" : "audit after opening: " + audit.problems.front());

  now_ = std::move(found);
  moment_ = now_.at(instant);
  now_.see_due(moment_);
  // Leases that were not synced went with the power. Their tokens are not given again, but smaller ones may be.
  if (power_lost_) last_token_ = 0;
  power_lost_ = false;
  // There may have been no room for the clock's file, and a fault may have hit it.
  clock_unsure_ = has_no_reserve() || planned_.has_value() || fault_while_opening_;
  confirm();
  // Workers of the process are gone with it; those elsewhere still hold what they hold.
  for (const Held& lease : held_) {
    if (lease.outlives_process) continue;
    if (stale_.size() >= 40) stale_.erase(stale_.begin());
    stale_.push_back(lease);
  }
  std::erase_if(held_, [](const Held& lease) { return !lease.outlives_process; });
}

}  // namespace bide::simulation
