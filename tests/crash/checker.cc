#include "crash/checker.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace bide::crash {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kExamples = 20;
// A thread may be put aside between two looks at the clock, by the owner of a lease and by the process that gets it.
constexpr std::int64_t kBlinkUs = 50'000;

struct Attempt {
  std::uint64_t token = 0;
  std::int64_t number = 0;
  std::string process = {};
  std::int64_t start_us = kNever;
  std::int64_t lease_us = 0;
  std::int64_t valid_until_us = 0;  // As far as its worker could know.
  std::int64_t settle_us = kNever;  // First asked for.
  std::int64_t asks = 0;
  std::string outcome = {};
  std::int64_t after_us = 0;
  bool accepted = false;
  bool refused = false;
  std::int64_t refused_us = 0;

  bool started() const { return start_us != kNever; }
  bool is_final() const { return outcome == kDone || outcome == kDead; }
};

struct Job {
  std::int64_t due_us = kNever;  // The earliest that it can have been.
  bool confirmed = false;
  std::int64_t fresh = 0;
  std::int64_t asks = 0;
  std::int64_t refusals = 0;
  // Of an effect.
  std::string parent = {};
  std::uint64_t parent_token = 0;

  std::map<std::uint64_t, Attempt> attempts = {};
};

// Between the grant of a lease and its arrival there may be a pause of either side. A lease that arrives so soon after
// one may have been granted when it began.
constexpr std::int64_t kAfterPauseUs = 1'000'000;

struct Process {
  std::int64_t last_word_us = 0;
  std::int64_t paused_us = kNever;
  std::int64_t killed_us = kNever;
  bool gone = false;
  bool in_order = false;

  // It was alive until then at least.
  std::int64_t end_us() const { return killed_us != kNever ? killed_us : gone ? last_word_us : kNever; }
};

class Examination {
 public:
  Examination(const std::vector<Event>& events, const Readback& readback, const Capabilities& can)
      : events_(events), readback_(readback), can_(can) {
    for (const char* name : kViolations) findings_.violations[name] = 0;
  }

  Findings run() {
    for (const Event& event : events_) read(event);
    learn_effects();
    for (const auto& [id, job] : jobs_) {
      look_at_starts(id, job);
      look_at_end(id, job);
    }
    look_at_listing();
    look_at_recovery();
    for (const std::string& problem : readback_.audit_problems) violated("audit", problem);
    findings_.dead = readback_.dead_by_reason;
    return std::move(findings_);
  }

 private:
  void violated(const char* name, const std::string& how) {
    ++findings_.violations[name];
    if (findings_.examples.size() < kExamples) findings_.examples.push_back(std::string(name) + ": " + how);
  }

  // Everything that was written down about a job: a violation among hundreds of faults can be explained only by it.
  std::string story_of(const std::string& id) const {
    std::string text;
    for (const Event& event : events_) {
      if (event.subject != id && event.text(1) != id) continue;
      text += "\n      " + std::to_string(event.at_us) + " " + event.process + " " + event.what + " " + event.subject;
      for (const std::string& word : event.more) text += " " + word;
    }
    return text;
  }

  Attempt& attempt_of(const Event& event) {
    const auto token = static_cast<std::uint64_t>(event.number(0));
    Attempt& attempt = jobs_[event.subject].attempts[token];
    attempt.token = token;
    if (attempt.process.empty()) attempt.process = event.process;
    return attempt;
  }

  void read(const Event& event) {
    Process& speaker = processes_[event.process];
    speaker.last_word_us = std::max(speaker.last_word_us, event.at_us);
    if (event.what == "enqueue") {
      Job& job = jobs_[event.subject];
      job.due_us = std::min(job.due_us, event.at_us + event.number(0) * 1000);
      ++job.asks;
    } else if (event.what == "enqueued") {
      Job& job = jobs_[event.subject];
      job.confirmed = true;
      job.fresh += event.number(0) != 0 ? 1 : 0;
    } else if (event.what == "not_enqueued") {
      ++jobs_[event.subject].refusals;
    } else if (event.what == "leased") {
      Attempt& attempt = attempt_of(event);
      attempt.lease_us = event.number(2) * 1000;
      const std::int64_t given_us = event.number(3) == 0 ? event.at_us : event.number(3);
      attempt.valid_until_us = std::min(given_us, paused_since(event.at_us)) + attempt.lease_us - kBlinkUs;
    } else if (event.what == "extended") {
      Attempt& attempt = attempt_of(event);
      attempt.valid_until_us = std::max(attempt.valid_until_us, event.number(1) + attempt.lease_us);
    } else if (event.what == "start") {
      Attempt& attempt = attempt_of(event);
      ++findings_.starts;
      if (attempt.started()) violated("overlap", "job " + event.subject + ": one lease was started twice");
      attempt.start_us = event.at_us;
      attempt.process = event.process;
      attempt.number = event.number(1);
    } else if (event.what == "settle") {
      Attempt& attempt = attempt_of(event);
      attempt.settle_us = std::min(attempt.settle_us, event.at_us);
      ++attempt.asks;
      attempt.outcome = event.text(1);
      attempt.after_us = event.number(2) * 1000;
    } else if (event.what == "settled") {
      attempt_of(event).accepted = true;
    } else if (event.what == "not_settled") {
      Attempt& attempt = attempt_of(event);
      attempt.refused = true;
      attempt.refused_us = event.at_us;
    } else if (event.what == "effect") {
      Job& effect = jobs_[event.subject];
      effect.due_us = std::min(effect.due_us, event.at_us + event.number(0) * 1000);
      effect.parent = event.text(1);
      effect.parent_token = static_cast<std::uint64_t>(event.number(2));
    } else if (event.what == "killed") {
      processes_[event.subject].killed_us = event.at_us;
      ++findings_.kills[event.text(0)];
    } else if (event.what == "paused") {
      ++findings_.pauses[event.text(0)];
      processes_[event.subject].paused_us = event.at_us;
      pauses_.emplace_back(event.at_us, kNever);
    } else if (event.what == "resumed") {
      for (auto& [from_us, until_us] : pauses_) {
        if (from_us == processes_[event.subject].paused_us) until_us = event.at_us;
      }
    } else if (event.what == "gone") {
      processes_[event.subject].gone = true;
      processes_[event.subject].in_order = event.text(0) == "0";
    }
  }

  std::int64_t paused_since(std::int64_t at_us) const {
    std::int64_t since_us = kNever;
    for (const auto& [from_us, until_us] : pauses_) {
      if (until_us == kNever || at_us - until_us < kAfterPauseUs) since_us = std::min(since_us, from_us);
    }
    return since_us;
  }

  // Effects are as real as the outcome that they belong to.
  void learn_effects() {
    for (auto& [id, job] : jobs_) {
      if (job.parent.empty()) continue;
      const Attempt& parent = jobs_[job.parent].attempts[job.parent_token];
      ++job.asks;
      if (parent.accepted) {
        job.confirmed = true;
        ++findings_.effects;
      } else if (parent.refused && parent.asks == 1 && can_.atomic_effects &&
                 !somebody_died(parent.settle_us, parent.refused_us)) {
        ++job.refusals;
      }
    }
  }

  // Then a call may have been repeated on the way: accepted the first time, by whoever died before saying so, and
  // refused the second time.
  bool somebody_died(std::int64_t from_us, std::int64_t until_us) const {
    return std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
      return process.second.gone && process.second.end_us() >= from_us && process.second.end_us() <= until_us;
    });
  }

  std::int64_t end_of(const Attempt& attempt) const {
    const auto process = processes_.find(attempt.process);
    const std::int64_t alive_until = process == processes_.end() ? kNever : process->second.end_us();
    return std::min({attempt.settle_us, attempt.valid_until_us, alive_until});
  }

  void look_at_starts(const std::string& id, const Job& job) {
    std::vector<const Attempt*> started;  // In the order of their tokens.
    for (const auto& [token, attempt] : job.attempts) {
      findings_.accepted_outcomes += attempt.accepted ? 1 : 0;
      findings_.refused_outcomes += attempt.refused ? 1 : 0;
      if (attempt.started()) started.push_back(&attempt);
    }
    for (std::size_t i = 0; i < started.size(); ++i) {
      const Attempt& later = *started[i];
      const std::string name = "job " + id + ", token " + std::to_string(later.token);
      if (job.due_us != kNever && later.start_us < job.due_us) {
        violated("early", name + ": by " + std::to_string(job.due_us - later.start_us) + " us" + story_of(id));
      }
      if (i == 0) {
        if (job.due_us != kNever) {
          findings_.latest_start_ms = std::max(findings_.latest_start_ms, (later.start_us - job.due_us) / 1000);
        }
        continue;
      }
      for (std::size_t before = 0; before < i; ++before) {
        const Attempt& earlier = *started[before];
        const std::string pair = name + ", after token " + std::to_string(earlier.token);
        if (earlier.accepted && earlier.settle_us != kNever && earlier.settle_us > later.start_us) {
          violated("stale_accepted", pair);
        }
        if (std::max(earlier.start_us, later.start_us) < std::min(end_of(earlier), end_of(later))) {
          violated("overlap", pair + ": in " + earlier.process + " and " + later.process);
        }
        if (earlier.accepted && earlier.is_final() && can_.final_settle) violated("run_after_settle", pair);
      }
      look_at_reason(id, name, *started[i - 1], later);
    }
  }

  // Why there was another attempt.
  void look_at_reason(const std::string& id, const std::string& name, const Attempt& earlier, const Attempt& later) {
    if (earlier.accepted && !can_.final_settle && later.number <= earlier.number) {
      // The acknowledgement was lost with its connection: what was settled is handed out again, as the same attempt.
      ++findings_.duplicates["redelivered"];
      return;
    }
    const Process& process = processes_[earlier.process];
    const bool ended = process.end_us() <= later.start_us;
    const bool stopped = ended && process.in_order;
    if (later.number <= earlier.number && earlier.outcome != kReturned && !stopped) {
      violated("uncounted", name + " is attempt " + std::to_string(later.number) + " after attempt " +
                                std::to_string(earlier.number));
    }
    if (earlier.accepted && !earlier.is_final()) {
      ++(earlier.outcome == kTimedOut ? findings_.duplicates["timed_out"] : findings_.retries);
      const bool stale = earlier.settle_us > later.start_us;  // Said already.
      if (!stale && later.start_us < earlier.settle_us + earlier.after_us) {
        violated("early", name + ": its retry, by " +
                              std::to_string(earlier.settle_us + earlier.after_us - later.start_us) + " us" +
                              story_of(id));
      }
      return;
    }
    if (earlier.accepted) {
      if (!can_.final_settle) ++findings_.duplicates["redelivered"];
    } else if (ended) {
      ++findings_.duplicates[stopped ? "stopped" : "crashed"];
    } else if (earlier.valid_until_us <= later.start_us) {
      ++findings_.duplicates["lease_lost"];
    } else if (earlier.asks > 0 && !earlier.is_final() && earlier.settle_us <= later.start_us) {
      ++findings_.duplicates["lost_reply"];
    } else {
      violated("unexplained", name + ": its lease in " + earlier.process + " was valid");
    }
  }

  void look_at_end(const std::string& id, const Job& job) {
    if (job.confirmed) ++findings_.confirmed;
    if (job.fresh > 1) violated("duplicate_id", "job " + id + " was new " + std::to_string(job.fresh) + " times");
    bool started = false;
    bool ended = false;    // Confirmed to somebody.
    bool may_end = false;  // Somebody asked for it.
    bool done = false;
    for (const auto& [token, attempt] : job.attempts) {
      started = started || attempt.started();
      ended = ended || (attempt.accepted && attempt.is_final());
      may_end = may_end || attempt.is_final();
      done = done || (attempt.accepted && attempt.outcome == kDone);
    }
    const std::string name = "job " + id;
    const auto listed = states().find(id);
    const bool there = listed != states().end();
    if ((started || there) && job.asks == job.refusals) {
      violated("unexpected", name + (job.asks == 0 ? " was never enqueued" : " was refused"));
    }
    if (there) {
      const bool over = listed->second == JobState::kDone || listed->second == JobState::kDead;
      if (!over) violated("unfinished", name + " is " + std::string(to_string(listed->second)));
      if (over && !ended) ++findings_.unsaid;
      if (done && listed->second == JobState::kDead) violated("unexpected", name + " was done and is dead");
      return;
    }
    if (!job.confirmed || ended) return;
    if (!can_.inspect && may_end) {
      ++findings_.unsaid;  // Nobody can tell.
      return;
    }
    violated(started ? "vanished" : "lost", name);
  }

  const std::map<std::string, JobState>& states() {
    if (states_.empty()) states_.insert(readback_.jobs.begin(), readback_.jobs.end());
    return states_;
  }

  void look_at_listing() {
    std::set<std::string> seen;
    for (const auto& [id, state] : readback_.jobs) {
      if (!seen.insert(id).second) violated("duplicate_id", "job " + id + " is listed twice");
      if (!jobs_.contains(id)) violated("unexpected", "job " + id + " is there and was never enqueued");
    }
  }

  void look_at_recovery() {
    std::vector<std::int64_t> kills;  // Since the last start.
    for (const Event& event : events_) {
      if (event.what == "killed") kills.push_back(event.at_us);
      if (event.what != "start") continue;
      for (const std::int64_t at_us : kills) {
        findings_.longest_recovery_ms = std::max(findings_.longest_recovery_ms, (event.at_us - at_us) / 1000);
      }
      kills.clear();
    }
  }

  const std::vector<Event>& events_;
  const Readback& readback_;
  const Capabilities& can_;
  Findings findings_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, Process> processes_;
  std::vector<std::pair<std::int64_t, std::int64_t>> pauses_;
  std::map<std::string, JobState> states_;
};

std::string counted(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  return text.empty() ? "none" : text;
}

}  // namespace

std::uint64_t Findings::violation_count() const {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : violations) sum += count;
  return sum;
}

std::string Findings::report() const {
  std::string text = "violations: " + counted(violations) + "\n";
  text += "load: confirmed " + std::to_string(confirmed) + ", effects " + std::to_string(effects) + ", started " +
          std::to_string(starts) + ", outcomes accepted " + std::to_string(accepted_outcomes) + ", refused " +
          std::to_string(refused_outcomes) + ", unsaid " + std::to_string(unsaid) + "\n";
  text += "faults: kills: " + counted(kills) + "; pauses: " + counted(pauses) + "\n";
  text += "started again: " + std::to_string(retries) + " retries; duplicates: " + counted(duplicates) +
          "; dead: " + counted(dead) + "\n";
  text += "times: latest first start " + std::to_string(latest_start_ms) + " ms after it was due, longest recovery " +
          std::to_string(longest_recovery_ms) + " ms from a kill to the next start\n";
  for (const std::string& example : examples) text += "  " + example + "\n";
  return text;
}

Findings check(const std::vector<Event>& events, const Readback& readback, const Capabilities& can) {
  return Examination(events, readback, can).run();
}

}  // namespace bide::crash
