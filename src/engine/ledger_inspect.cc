// Ledger, inspecting: jobs and queues, found, listed, watched, explained and audited.

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/broker_answers.h"
#include "core/duration.h"
#include "core/quote.h"
#include "core/time_text.h"
#include "engine/ledger.h"

namespace bide::engine {

namespace {

constexpr std::uint32_t kNoNumber = 0xffff'ffff;  // Of a name that does not exist.
constexpr std::size_t kReadsAPiece = 256;
// Bytes of records read in one step, and for one page. A record has one checksum: its body is read even when it is not shown.
constexpr std::size_t kReadAPiece = 1 << 20;
constexpr std::size_t kDeferredCost = 4 << 10;  // Of a body that another thread will read.
constexpr std::size_t kReadAPage = 64 << 20;

bool is_job(EntryState state) { return state != EntryState::kFree && state != EntryState::kTombstone; }

bool is_finished(EntryState state) {
  return state == EntryState::kDone || state == EntryState::kDead || state == EntryState::kQuarantined;
}

Result<journal::RecordView> read_unwrapped(journal::Journal& journal, journal::RecordRef ref) {
  const auto view = journal.read(ref);
  return view ? unwrap(*view) : view;
}

Time time_at(std::int64_t ms) { return Time(Milliseconds(ms)); }

// Where a page ends: the sort key of its last job, and its id, since many jobs share a time.
struct Place {
  std::int64_t key = 0;
  JobId id;
  friend auto operator<=>(const Place&, const Place&) = default;
};

std::string to_cursor(const Place& place) {
  char key[24];
  std::snprintf(key, sizeof key, "%llx", static_cast<unsigned long long>(place.key) ^ (1ull << 63));
  return std::string(key) + "-" + place.id.to_string();
}

std::optional<Place> from_cursor(const std::string& cursor) {
  const std::size_t dash = cursor.find('-');
  if (dash == std::string::npos || dash == 0 || dash > 16) return std::nullopt;
  unsigned long long key = 0;
  for (const char c : cursor.substr(0, dash)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return std::nullopt;
    key = key << 4 | static_cast<unsigned>(digit);
  }
  const auto id = JobId::parse(cursor.substr(dash + 1));
  if (!id) return std::nullopt;
  return Place{static_cast<std::int64_t>(key ^ (1ull << 63)), *id};
}

}  // namespace

Error no_such_job(const JobId& id) {
  return Error{ErrorCode::kNotFound, "there is no job " + id.to_string() + "; it may be done and forgotten"};
}

Result<Ledger::Loaded> Ledger::load(Slot slot) {
  const Entry& entry = state_[slot];
  const auto view = read_unwrapped(*journal_, entry.body());
  if (!view) return view.error();
  journal::Accepted record;
  if (Status decoded = decode(*view, record); !decoded) return decoded.error();
  Loaded loaded{std::move(record.job), std::move(record.how.past), record.how.accepted_ms};
  if (!entry.has_expiry) loaded.job.expires.reset();  // It was replayed.
  if (!entry.has_details()) return loaded;
  auto past = load_past(slot);
  if (!past) return past.error();
  loaded.past = std::move(*past);
  return loaded;
}

Result<journal::Past> Ledger::load_past(Slot slot) {
  const Entry& entry = state_[slot];
  if (entry.has_details()) {
    const auto view = read_unwrapped(*journal_, entry.details());
    if (!view) return view.error();
    journal::Changed record;
    if (Status decoded = decode(*view, record); !decoded) return decoded.error();
    return std::move(record.past);
  }
  // Only a body that an attempt replaced, the running one or an earlier one, carries a past.
  const bool running = entry.entry_state() == EntryState::kRunning;
  if (!(running && state_.leases()[entry.next].body_saved) && entry.attempts <= (running ? 1 : 0)) return journal::Past{};
  const auto view = read_unwrapped(*journal_, entry.body());
  if (!view) return view.error();
  journal::Accepted record;
  if (Status decoded = decode(*view, record); !decoded) return decoded.error();
  return std::move(record.how.past);
}

Result<JobInfo> Ledger::describe(Slot slot, DeferredBodies* deferred, std::size_t at) {
  const Entry& entry = state_[slot];
  const EntryState state = entry.entry_state();
  JobInfo info;
  info.state = state_.shown_state(slot);
  info.due = time_at(state_.due(entry));
  info.attempts = static_cast<std::uint32_t>(entry.attempts);
  if (state == EntryState::kWaiting) info.waits_for = state_.relations().waits_for(slot);
  if (state == EntryState::kDone) {
    info.job.id = entry.id;
    if (entry.has_relations) info.job.flow = state_.relations().flow(slot);
    info.job.queue = state_.queues().names()[static_cast<std::uint16_t>(entry.queue)];
    info.job.kind = state_.kinds()[static_cast<std::uint16_t>(entry.kind)];
    info.finished = info.due;
    const auto view = read_unwrapped(*journal_, entry.details());
    if (!view) return view.error();
    journal::DoneRecord record;
    if (Status decoded = decode(*view, record); !decoded) return decoded.error();
    info.result = std::move(record.result);
    info.result_content_type = std::move(record.content_type);
    info.counts = record.past.counts;
    info.history = std::move(record.past.history);
    if (entry.body_bytes == 0) return info;
    const auto body = read_unwrapped(*journal_, entry.body());
    journal::Accepted accepted;
    // One that cannot be read takes nothing else along.
    if (!body || !decode(*body, accepted)) return info;
    info.job = std::move(accepted.job);
    info.whole = true;
    return info;
  }
  if (state == EntryState::kQuarantined) return describe_unreadable(slot, {});
  const auto take_past = [&info](journal::Past& past) {
    info.counts = past.counts;
    info.history = std::move(past.history);
    info.note = std::move(past.note);
  };
  const bool is_large = deferred != nullptr && entry.body_bytes >= DeferredBodies::kLeastBytes;
  journal::DeferredRead read = is_large ? journal_->defer_read(entry.body()) : nullptr;
  if (read && entry.has_details()) {
    auto past = load_past(slot);
    if (!past) return past.error();
    take_past(*past);
  } else if (!read) {
    auto loaded = load(slot);
    if (!loaded) return loaded.error();
    info.job = std::move(loaded->job);
    take_past(loaded->past);
  }
  if (const SavedSteps::Steps* steps = state_.steps().find(slot)) info.steps = *steps;
  if (state == EntryState::kRunning) {
    const Running& running = state_.leases()[entry.next];
    info.worker = state_.workers()[running.worker];
    if (const auto known = progress_.find(running.token); known != progress_.end()) info.progress = known->second.second;
  }
  if (state == EntryState::kDead) {
    info.finished = info.due;
    const auto view = read_unwrapped(*journal_, entry.details());
    if (!view) return view.error();
    journal::Changed record;
    if (Status decoded = decode(*view, record); !decoded) return decoded.error();
    info.dead_reason = record.dead;
  }
  if (read) {
    deferred->add({.at = at,
               .read = std::move(read),
               .with_past = !entry.has_details(),
               .with_expiry = entry.has_expiry != 0});
  }
  return info;
}

Result<JobInfo> Ledger::find(const JobId& id, DeferredBodies* deferred) {
  const Slot slot = state_.find(id);
  if (slot == kNoSlot) return no_such_job(id);
  return describe(slot, deferred);
}

std::vector<QueueInfo> Ledger::queues() {
  std::vector<QueueInfo> infos;
  std::vector<int> workers(state_.queues().size());
  std::vector<std::uint32_t> latest(workers.size());  // The last subscription counted: one may name a queue twice.
  for (const auto& [id, subscriber] : subscriptions_) {
    for (const SubscribedQueue& share : subscriber.queues) {
      if (share.queue && std::exchange(latest[*share.queue], id) != id) ++workers[*share.queue];
    }
  }
  for (std::size_t i = 0; i < state_.queues().size(); ++i) {
    const auto number = static_cast<std::uint16_t>(i);
    if (!state_.queues().names().exists(number)) continue;
    const Queue& queue = state_.queues()[number];
    QueueInfo info{.name = state_.queues().names()[number],
                   .paused = queue.paused,
                   .scheduled = queue.count(EntryState::kScheduled),
                   .ready = queue.count(EntryState::kReady),
                   .waiting = queue.count(EntryState::kWaiting),
                   .running = queue.count(EntryState::kRunning),
                   .dead = queue.count(EntryState::kDead) + queue.count(EntryState::kQuarantined),
                   .done = queue.count(EntryState::kDone),
                   .oldest_ready = {},
                   .workers = workers[i]};
    if (const auto oldest = state_.oldest_ready(number)) info.oldest_ready = time_at(*oldest);
    infos.push_back(std::move(info));
  }
  std::sort(infos.begin(), infos.end(), [](const QueueInfo& a, const QueueInfo& b) { return a.name < b.name; });
  return infos;
}

struct Ledger::Listing {
  JobFilter filter;
  std::uint8_t states = 0;  // Bits by JobState; none: all.
  bool newest_first = false;
  std::optional<std::uint32_t> queue;
  std::optional<std::uint32_t> kind;
  std::optional<Place> after;
  std::size_t limit = 0;
  Slot cursor = 0;
  std::vector<Place> best;  // The first `limit` + 1 places after `after`, and some more.
  bool found = false;       // `best` is what there is; now they are read.
  std::size_t next = 0;     // Of `best`, to be read.
  std::size_t bytes = 0;    // That the page has, and that were read for it.
  std::size_t bytes_read = 0;
  JobPage page;
  std::shared_ptr<DeferredBodies> deferred;

  Place place_of(const State& state, Slot slot) const {
    return {newest_first ? -state.due(slot) : state.due(slot), state[slot].id};
  }

  bool matches(const State& state, Slot slot) const {
    const Entry& entry = state[slot];
    if (!is_job(entry.entry_state()) || !shows(state.shown_state(slot))) return false;
    if (!filter.group.empty() && state.group_name(slot) != filter.group) return false;
    if (queue && entry.queue != *queue) return false;
    if (kind && entry.kind != *kind) return false;
    if (!filter.flow.is_nil() && !(entry.has_relations && state.relations().is_in_flow(slot, filter.flow))) return false;
    if (filter.since && state.due(slot) < filter.since->time_since_epoch().count()) return false;
    if (filter.until && state.due(slot) > filter.until->time_since_epoch().count()) return false;
    return !after || place_of(state, slot) > *after;
  }

  // What the filter asks for is not in memory.
  bool looks_into_jobs() const { return !filter.headers.empty() || !filter.group.empty(); }

  bool shows(JobState state) const { return states == 0 || (states >> static_cast<unsigned>(state) & 1) != 0; }

  void trim() {
    std::sort(best.begin(), best.end());
    if (best.size() > limit + 1) best.resize(limit + 1);
  }
};

void Ledger::list(JobFilter filter, const std::string& cursor, std::size_t limit, Completion<JobPage> done,
                  std::shared_ptr<DeferredBodies> deferred) {
  auto listing = std::make_shared<Listing>();
  listing->limit = std::clamp<std::size_t>(limit, 1, 1000);
  listing->deferred = std::move(deferred);
  if (!cursor.empty()) {
    listing->after = from_cursor(cursor);
    if (!listing->after) {
      answer_after_commit<JobPage>(
          done, Error{ErrorCode::kInvalidArgument, "cursor " + core::quoted(cursor) + " is not one that was given out"});
      return;
    }
  }
  for (const JobState state : filter.states) {
    listing->states = static_cast<std::uint8_t>(listing->states | 1u << static_cast<unsigned>(state));
  }
  listing->newest_first = !filter.states.empty() && std::all_of(filter.states.begin(), filter.states.end(), [](JobState s) {
    return s == JobState::kDone || s == JobState::kDead;
  });
  listing->filter = std::move(filter);
  const auto run = [this, listing, done]() -> Result<bool> {
    return listing->found ? read_page(*listing, done) : search(*listing, done);
  };
  tasks_.push_back({run, [done](const Error& error) { done(error); }});
}

Slot Ledger::piece_end(Slot begin) const {
  return static_cast<Slot>(std::min<std::size_t>(state_.slots(), begin + State::kPiece));
}

Result<bool> Ledger::search(Listing& listing, const Completion<JobPage>& done) {
  const Slot end = piece_end(listing.cursor);
  std::size_t reads = 0;
  std::size_t read = 0;
  // Between pieces a name may be freed and its number given to another.
  const auto number_of = [](const Names& names, const std::string& name) -> std::optional<std::uint32_t> {
    if (name.empty()) return std::nullopt;
    return names.find(name).value_or(kNoNumber);
  };
  listing.queue = number_of(state_.queues().names(), listing.filter.queue);
  listing.kind = number_of(state_.kinds(), listing.filter.kind);
  if (listing.queue == kNoNumber || listing.kind == kNoNumber) listing.cursor = state_.slots();
  for (; listing.cursor < end && reads < kReadsAPiece && read < kReadAPiece; ++listing.cursor) {
    const Entry& entry = state_[listing.cursor];
    if (!listing.matches(state_, listing.cursor)) continue;
    if (listing.looks_into_jobs() && entry.entry_state() == EntryState::kDone) {
      // What is not kept of it cannot match.
      if (entry.body_bytes == 0 || !listing.filter.error.empty()) continue;
      ++reads;
      read += entry.body_bytes + entry.details_bytes;
      const auto info = describe(listing.cursor);
      if (info && !core::matches(listing.filter, info->job)) continue;
    } else if (listing.looks_into_jobs()) {
      ++reads;
      read += entry.body_bytes + entry.details_bytes;
      const auto loaded = load(listing.cursor);
      // One that cannot be read may match, so it is shown.
      if (loaded && !core::matches(listing.filter, loaded->job)) continue;
      if (loaded && !listing.filter.error.empty() && !core::has_error(loaded->past.history, listing.filter.error)) continue;
    } else if (!listing.filter.error.empty()) {
      if (entry.entry_state() == EntryState::kDone) continue;
      ++reads;
      read += entry.has_details() ? entry.details_bytes : entry.body_bytes;
      const auto past = load_past(listing.cursor);
      if (past && !core::has_error(past->history, listing.filter.error)) continue;
    }
    listing.best.push_back(listing.place_of(state_, listing.cursor));
    if (listing.best.size() >= 2 * listing.limit + 2) listing.trim();
  }
  if (listing.cursor < state_.slots()) return false;
  listing.trim();
  listing.found = true;
  return read_page(listing, done);
}

Result<bool> Ledger::read_page(Listing& listing, const Completion<JobPage>& done) {
  const std::size_t last = std::min(listing.best.size(), listing.limit);
  std::size_t read = 0;
  while (listing.next < last && read < kReadAPiece) {
    if (listing.bytes >= JobPage::kMostBytes || listing.bytes_read >= kReadAPage) break;
    const Slot slot = state_.find(listing.best[listing.next++].id);
    // Other requests run between the pieces.
    if (slot == kNoSlot || !listing.shows(state_.shown_state(slot))) continue;
    const std::size_t bytes = state_[slot].body_bytes + state_[slot].details_bytes;
    const std::size_t deferred = listing.deferred ? listing.deferred->size() : 0;
    auto info = describe(slot, listing.deferred.get(), listing.page.jobs.size());
    const bool is_deferred = listing.deferred && listing.deferred->size() > deferred;
    // A record that cannot be read does not fail the page.
    if (!info) info = describe_unreadable(slot, info.error());
    if (!listing.filter.bodies) {
      info->job.body = {};
      info->result = {};
    }
    read += is_deferred ? kDeferredCost + state_[slot].details_bytes : bytes;
    listing.bytes_read += bytes;
    listing.bytes += core::shown_bytes(*info) + (is_deferred && listing.filter.bodies ? state_[slot].body_bytes : 0);
    listing.page.jobs.push_back(std::move(*info));
  }
  const bool full = listing.bytes >= JobPage::kMostBytes || listing.bytes_read >= kReadAPage;
  if (listing.next < last && !full) return false;
  if (listing.next < listing.best.size()) listing.page.next = to_cursor(listing.best[listing.next - 1]);
  answer_after_commit<JobPage>(done, std::move(listing.page));
  return true;
}

void Ledger::watch(const JobId& id, std::uint64_t number, Completion<JobInfo> done) {
  const Slot slot = state_.find(id);
  if (slot != kNoSlot && !is_finished(state_[slot].entry_state())) {
    watchers_[id].push_back({number, std::move(done)});
    return;
  }
  // What finished it may be in this step and not yet durable.
  answer_after_commit<JobInfo>(std::move(done), find(id));
}

void Ledger::give_up_watch(const JobId& id, std::uint64_t number) {
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return;
  std::erase_if(found->second, [number](const Watch& watch) { return watch.number == number; });
  if (found->second.empty()) watchers_.erase(found);
}

std::size_t Ledger::watches() const {
  std::size_t count = 0;
  for (const auto& [id, watches] : watchers_) count += watches.size();
  return count;
}

// The job is done, dead or gone: its watches are answered after the commit.
void Ledger::finished(const JobId& id) {
  if (!schedules_by_last_job_.empty()) {
    const auto waiting = schedules_by_last_job_.find(id);
    if (waiting != schedules_by_last_job_.end()) {
      schedule_times_.hasten(waiting->second);
      schedules_by_last_job_.erase(waiting);
    }
  }
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return;
  const Result<JobInfo> info = find(id);
  for (Watch& watch : found->second) answer_after_commit<JobInfo>(std::move(watch.done), info);
  watchers_.erase(found);
}

Result<Explanation> Ledger::explain(const JobId& id) {
  const Slot slot = state_.find(id);
  if (slot == kNoSlot) return no_such_job(id);
  const Entry& entry = state_[slot];
  auto info = describe(slot);
  if (!info || info->dead_reason == DeadReason::kDamaged) {
    return Explanation{"damaged", "What is stored of it cannot be read: " + (info ? info->note : info.error().message) + "."};
  }
  const auto number = static_cast<std::uint16_t>(entry.queue);
  const std::string queue = "queue " + core::quoted(state_.queues().names()[number]);
  const auto span = [](std::int64_t ms) { return core::rough_duration(Milliseconds(ms)); };
  const std::string last_error = info->history.empty() ? "" : "; the last error was " + core::quoted(info->history.back().text);
  switch (info->state) {
    case JobState::kDone:
      return Explanation{"done", "It is done, after " + std::to_string(info->attempts) + " attempt(s), " +
                                     span(now_ms() - state_.due(entry)) + " ago."};
    case JobState::kDead:
      return Explanation{"dead", "It is dead (" + std::string(to_string(info->dead_reason.value_or(DeadReason::kRejected))) +
                                     ") since " + span(now_ms() - state_.due(entry)) + last_error +
                                     ". Replay it to give it a fresh start."};
    case JobState::kRunning: {
      const Running& running = state_.leases()[entry.next];
      return Explanation{"running", "Attempt " + std::to_string(info->attempts) + " has been running for " +
                                        span(now_ms() - running.started_ms) + " in worker " + core::quoted(info->worker) +
                                        (running.cancel_requested ? ", which was asked to stop." : ".")};
    }
    case JobState::kScheduled: {
      const std::string wait = span(state_.due(entry) - now_ms());
      if (!info->note.empty() && !info->note.starts_with(kEditedNote)) return Explanation{"returned", "It was given back (" + info->note + ") and is due in " + wait + "."};
      if (info->counts.total() > 0) {
        return Explanation{"retry", "It waits for attempt " + std::to_string(info->attempts + 1) + " of " +
                                        std::to_string(info->job.retry.max_attempts) + ", due in " + wait + last_error + "."};
      }
      return Explanation{"scheduled", "It is due in " + wait + "."};
    }
    case JobState::kWaiting: return explain_wait(info->job);
    case JobState::kReady: break;
  }
  if (info->job.expires && info->job.expires->time_since_epoch().count() <= wall_us_ / 1000) {
    return Explanation{"expired", "It was to start before " + core::format_time(*info->job.expires) +
                                      " and has not: it will not run, and is dead as soon as a worker looks at " + queue + "."};
  }
  if (state_.queues()[number].paused) {
    return Explanation{"paused", "It is ready, but " + queue + " is paused. Resume the queue to run it."};
  }
  bool has_worker = false;  // Of other kinds, perhaps.
  int workers = 0;
  int room = 0;
  for (const auto& [subscription, subscriber] : subscriptions_) {
    if (!subscriber.takes(number)) continue;
    has_worker = true;
    if (!subscriber.kinds.takes(info->job.kind)) continue;
    ++workers;
    room += subscriber.room();
  }
  if (workers == 0 && has_worker) {
    return Explanation{"no_worker", "It is ready, but no worker of " + queue + " takes jobs of kind " + core::quoted(info->job.kind) +
                                        ". Start one."};
  }
  if (workers == 0) {
    return Explanation{"no_worker", "It is ready, but no worker takes jobs from " + queue + ". Start one."};
  }
  if (auto held = held_by_rules(slot)) return *held;
  const std::uint64_t ready = state_.queues()[number].count(EntryState::kReady);
  if (room == 0) {
    return Explanation{"credit", "It is ready, but all " + std::to_string(workers) + " worker(s) of " + queue +
                                     " hold as many jobs as they may; " + std::to_string(ready) + " job(s) are ready there."};
  }
  return Explanation{"behind", "It is ready and will be handed out next; " + std::to_string(ready) + " job(s) are ready in " + queue + "."};
}

AuditReport Ledger::begin_audit() {
  AuditReport report;
  const Counters& counters = state_.counters();
  report.accepted = counters.accepted;
  report.done = counters.done;
  report.removed = counters.removed();
  report.details = {{"cancelled", counters.cancelled},
                    {"deleted", counters.deleted},
                    {"purged", counters.purged},
                    {"forgotten", counters.forgotten},
                    {"duplicate_starts_lost", duplicate_starts_.lost},
                    {"duplicate_starts_timed_out", duplicate_starts_.timed_out},
                    {"duplicate_starts_crashed", duplicate_starts_.crashed}};
  for (const QueueInfo& queue : queues()) {
    report.details["scheduled"] += queue.scheduled;
    report.details["ready"] += queue.ready;
    report.details["waiting"] += queue.waiting;
    report.details["running"] += queue.running;
    report.details["dead"] += queue.dead;
    report.details["done_remembered"] += queue.done;
  }
  for (const char* state : {"scheduled", "ready", "waiting", "running", "dead"}) report.live += report.details[state];
  const FinishedIds::Use ids = finished_ids_.use();
  report.details["ids_remembered"] = ids.ids;
  report.details["ids_memory_bytes"] = ids.memory_bytes;
  report.details["ids_disk_bytes"] = ids.disk_bytes;
  report.details["ids_forgotten_early"] = ids.ids_forgotten_early;
  report.details["settles_forgotten_early"] = ids.tokens_forgotten_early;
  report.details["quarantined"] = state_.quarantined().size();
  report.problems = state_.audit_names();
  audit_schedules(report);
  state_.begin_audit();
  return report;
}

bool Ledger::audit_piece(AuditReport& report) {
  const auto problems = state_.audit_piece();
  if (!problems) return false;
  report.problems.insert(report.problems.end(), problems->begin(), problems->end());
  list_damage(report.problems);
  return true;
}

void Ledger::audit(Completion<AuditReport> done) {
  auto run = [this, done, report = std::optional<AuditReport>()]() mutable -> Result<bool> {
    if (!report) report = begin_audit();
    if (!audit_piece(*report)) return false;
    answer_after_commit<AuditReport>(done, std::move(*report));
    return true;
  };
  tasks_.push_back({std::move(run), [done](const Error& error) { done(error); }});
}

AuditReport Ledger::audit() {
  AuditReport report = begin_audit();
  while (!audit_piece(report)) {
  }
  return report;
}

}  // namespace bide::engine
