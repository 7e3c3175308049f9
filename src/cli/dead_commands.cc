// bide dead: the jobs that wait for a human.

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bide/dead_groups.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/dead_grouping.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 1000;
constexpr std::size_t kMostWatched = 2000;
constexpr std::size_t kFewestFailures = 5;
constexpr auto kWatchEvery = std::chrono::milliseconds(50);

constexpr Flag kLikeFlag = {"--like", "ID", "only of this group, by its id (`dead groups`) or that of a job in it"};

std::string group_of(const Client& client, const std::string& like) {
  if (core::is_dead_group_id(like)) return like;
  const auto id = JobId::parse(like);
  if (!id) fail_usage("--like: the id of a group (`bide dead groups`) or of a job in it, not " + core::quoted(like));
  const JobInfo info = take(client.find(*id));
  if (info.state == JobState::kDead) return dead_group_of(info);
  fail_usage("job " + like + " is not dead but " + std::string(to_string(info.state)));
}

JobPage dead_jobs(Client& client, const Invocation& call, std::size_t otherwise, bool bodies) {
  JobFilter filter = filter_of(call);
  filter.states = {JobState::kDead};
  filter.bodies = bodies;
  const auto most = static_cast<std::int64_t>(otherwise);
  const auto limit = static_cast<std::size_t>(call.number(kMostFlag.name, most, 1, static_cast<std::int64_t>(kNoLimit)));
  const auto like = call.value(kLikeFlag.name);
  JobPage page = list_all(client, filter, like ? kNoLimit : limit, call.value_or(kCursorFlag.name, ""));
  if (!like) return page;
  const std::string group = group_of(client, *like);
  std::erase_if(page.jobs, [&](const JobInfo& info) { return dead_group_of(info) != group; });
  if (page.jobs.size() > limit) page.jobs.resize(limit);
  return page;
}

constexpr std::uint64_t kMostGrouped = 1'000'000;

int list_groups(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  JobFilter filter = filter_of(call);
  StatusLine status;
  status.show("reading dead jobs");
  const DeadGroups found = take(dead_groups(client, filter, kMostGrouped));
  status.clear();
  const Time moment = now();
  Table table({"GROUP", "JOBS", "KIND", "FIRST", "LAST", "EXAMPLE", "ERROR"},
              {Table::Align::kLeft, Table::Align::kRight});
  JsonArray json;
  for (const DeadGroup& group : found.groups) {
    table.row({group.id, std::to_string(group.count), group.kind, relative_time(group.first, moment),
               relative_time(group.last, moment), group.example.to_string(), shortened(group.error, 80)});
    json.add(JsonObject()
                 .add("id", group.id)
                 .add("kind", group.kind)
                 .add("error", group.error)
                 .add("count", group.count)
                 .add("first", group.first)
                 .add("last", group.last)
                 .add("example", group.example.to_string())
                 .add("queues", JsonArray(group.queues)));
  }
  std::string text = found.groups.empty() ? "no dead jobs\n" : table.text();
  if (!found.complete) text += "only the newest " + std::to_string(found.looked_at) + " dead jobs were looked at\n";
  print(call, JsonObject().add("groups", json).add("looked_at", found.looked_at).add("complete", found.complete), text);
  return kOk;
}

// By id, by filter, or all of them when that was said.
std::vector<JobInfo> chosen(Client& client, const Invocation& call) {
  if (call.arguments().empty()) {
    if (!has_filter(call) && !call.has("--all") && !call.has(kLikeFlag.name)) {
      fail_usage("which ones? Give ids, a filter such as --kind or --like, or --all");
    }
    return dead_jobs(client, call, kNoLimit, false).jobs;
  }
  std::vector<JobInfo> jobs;
  for (const JobId& id : call.job_ids()) {
    JobInfo info = take(client.find(id));
    if (info.state != JobState::kDead) {
      fail_usage("job " + id.to_string() + " is not dead but " + std::string(to_string(info.state)));
    }
    jobs.push_back(std::move(info));
  }
  return jobs;
}

int list_dead(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  print_page(call, dead_jobs(client, call, 50, call.json()), "no dead jobs");
  return kOk;
}

int show_dead(const Invocation& call) {
  const JobId id = call.job_id(0);
  Client client = open_client(call, Missing::kRefuse);
  const JobInfo info = take(client.find(id));
  if (info.state != JobState::kDead) {
    throw Failure{kNotThere, "job " + id.to_string() + " is not dead but " + std::string(to_string(info.state))};
  }
  print(call, job_json(info), job_text(info, now()));
  return kOk;
}

struct ReplayPlan {
  bool keep_attempts = false;
  int rate = 0;                  // A second; 0: all at once, and nobody looks at what becomes of them.
  std::size_t canary = 0;        // So many first; the rest only when none of them fails again.
  int stop_at = 20;              // Percent.
  Milliseconds timeout{30'000};  // For the canaries.
};

// What becomes of jobs that were replayed. One has failed again when it is dead again, or waits for another attempt
// after a fault.
class ReplayWatch {
 public:
  explicit ReplayWatch(const Client& client) : client_(client) {}

  // `faults`: attempts that count as gone wrong already. Of very many that come to no end only the first are watched.
  void add(const JobId& id, std::uint32_t faults) {
    if (open_.size() < kMostWatched) open_.push_back({id, faults});
  }
  // Asks the broker about those that are still open. Throws Failure.
  void look() {
    std::erase_if(open_, [this](const Watched& watched) { return has_ended(watched, client_.find(watched.id)); });
  }

  std::size_t open() const { return open_.size(); }
  std::size_t well() const { return well_; }  // Done, or taken out by somebody.
  std::size_t failed() const { return failed_; }
  const std::string& first_failure() const { return first_failure_; }  // For people.

 private:
  struct Watched {
    JobId id;
    std::uint32_t faults = 0;
  };

  bool has_ended(const Watched& watched, const Result<JobInfo>& info) {
    if (!info && info.error().code != ErrorCode::kNotFound) fail(info.error());
    if (!info || info->state == JobState::kDone) {
      ++well_;
      return true;
    }
    const bool faulty = info->state == JobState::kDead || info->counts.total() > watched.faults;
    if (!faulty) return false;
    ++failed_;
    if (first_failure_.empty()) {
      const std::string error = info->history.empty() ? "" : ": " + info->history.back().text;
      first_failure_ =
          "job " + watched.id.to_string() + (info->state == JobState::kDead ? " is dead again" : " failed again") + error;
    }
    return true;
  }

  const Client client_;
  std::deque<Watched> open_;
  std::size_t well_ = 0;
  std::size_t failed_ = 0;
  std::string first_failure_;
};

// Replays many: with canaries first, at a rate, watching what becomes of them. It stops when a canary fails, and, while
// it goes on at a rate, when at least kFewestFailures and more than `stop_at` of those that have come to an end or
// failed have failed. What has not been replayed by then stays dead.
//
// Throws Failure: 1 too many fail again, 75 the canaries came to no end in time.
class Replay {
 public:
  Replay(Client& client, const Invocation& call, const std::vector<JobInfo>& jobs, const ReplayPlan& plan)
      : client_(client), call_(call), jobs_(jobs), plan_(plan), watch_(client) {}

  int run() {
    if (plan_.canary > 0) try_canaries();
    if (plan_.rate > 0) {
      go_on_at_rate();
    } else {
      while (next_ < jobs_.size()) replay(kBatch);
    }
    progress_.clear();
    if (jobs_.empty() && !call_.json()) say("no dead jobs match");
    return print_statuses(call_, "replayed", ids_, statuses_);
  }

 private:
  // The next ones, up to so many.
  void replay(std::size_t most) {
    std::vector<JobId> ids;
    const std::size_t end = std::min(jobs_.size(), next_ + most);
    for (std::size_t i = next_; i < end; ++i) ids.push_back(jobs_[i].job.id);
    const ReplayOptions options{.keep_attempts = plan_.keep_attempts, .delay = Milliseconds(0)};
    const auto answers =
        ask<std::vector<Status>>([&](auto done) { client_.inspector().replay(ids, options, std::move(done)); });
    for (std::size_t i = 0; i < ids.size() && i < answers.size(); ++i) {
      const std::uint32_t faults = plan_.keep_attempts ? jobs_[next_ + i].counts.total() : 0;
      if (answers[i]) watch_.add(ids[i], faults);
      ids_.push_back(ids[i]);
      statuses_.push_back(answers[i]);
    }
    next_ = end;
    show_progress();
  }

  void try_canaries() {
    replay(plan_.canary);
    const auto until = Clock::now() + plan_.timeout;
    for (watch_.look(); watch_.open() > 0 && watch_.failed() == 0; watch_.look()) {
      if (Clock::now() >= until) {
        stop(kTryAgain, std::to_string(watch_.open()) + " of " + std::to_string(ids_.size()) +
                            " canaries came to no end in time; is a worker running?");
      }
      std::this_thread::sleep_for(kWatchEvery);
      show_progress();
    }
    if (watch_.failed() > 0) stop(kJobFailed, "a canary failed: " + watch_.first_failure());
  }

  void go_on_at_rate() {
    const auto begin = Clock::now();
    const std::size_t before = next_;
    while (next_ < jobs_.size()) {
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      const auto due = before + 1 + static_cast<std::size_t>(seconds * plan_.rate);
      if (due > next_) replay(std::min(due - next_, kBatch));
      watch_.look();
      stop_if_too_many_fail();
      show_progress();
      if (next_ < jobs_.size()) std::this_thread::sleep_for(kWatchEvery);
    }
  }

  void stop_if_too_many_fail() {
    const std::size_t judged = watch_.failed() + watch_.well();
    const bool too_many = watch_.failed() * 100 > judged * static_cast<std::size_t>(plan_.stop_at);
    if (next_ == jobs_.size() || watch_.failed() < kFewestFailures || !too_many) return;
    stop(kJobFailed, std::to_string(watch_.failed()) + " of " + std::to_string(judged) +
                         " that were tried failed again; " + watch_.first_failure());
  }

  [[noreturn]] void stop(int exit_code, const std::string& why) {
    progress_.clear();
    throw Failure{exit_code,
                  "stopped after " + std::to_string(ids_.size()) + " of " + std::to_string(jobs_.size()) +
                      " jobs, the rest stays dead: " + why,
                  exit_code == kJobFailed ? "failed_again" : ""};
  }

  void show_progress() {
    if (jobs_.empty()) return;
    progress_.show_progress(next_, jobs_.size(),
                            "replayed " + std::to_string(next_) + " of " + std::to_string(jobs_.size()) + ", " +
                                std::to_string(watch_.well()) + " done, " + std::to_string(watch_.failed()) +
                                " failed again");
  }

  Client& client_;
  const Invocation& call_;
  const std::vector<JobInfo>& jobs_;
  const ReplayPlan& plan_;
  ReplayWatch watch_;
  StatusLine progress_;
  std::size_t next_ = 0;
  std::vector<JobId> ids_;
  std::vector<Status> statuses_;
};

std::map<std::string, std::uint64_t> by_kind(const std::vector<JobInfo>& jobs) {
  std::map<std::string, std::uint64_t> kinds;
  for (const JobInfo& info : jobs) ++kinds[info.job.kind];
  return kinds;
}

int replay_dead(const Invocation& call) {
  const ReplayPlan plan{.keep_attempts = call.has("--keep-attempts"),
                        .rate = static_cast<int>(call.number("--rate", 0, 1, 1'000'000)),
                        .canary = static_cast<std::size_t>(call.number("--canary", 0, 1, 1000)),
                        .stop_at = static_cast<int>(call.number("--stop-at", 20, 0, 100)),
                        .timeout = call.duration("--timeout").value_or(std::chrono::seconds(30))};
  Client client = open_client(call, Missing::kRefuse);
  // Before anything is done: what becomes of the replayed ones could not be seen.
  if (const Capabilities can = client.broker().capabilities(); (plan.rate > 0 || plan.canary > 0) && !can.inspect) {
    fail_usage("--rate and --canary look at what becomes of the jobs, which this broker cannot tell; nothing was "
               "replayed: " + can.why_not);
  }
  const std::vector<JobInfo> jobs = chosen(client, call);
  if (call.has(kDryRunFlag.name)) return print_plan(call, {"replay", "replayed"}, by_kind(jobs));
  return Replay(client, call, jobs, plan).run();
}

// When they died, in case --since was meant the other way round.
std::string span_of(const std::vector<JobInfo>& jobs) {
  std::optional<Time> first, last;
  for (const JobInfo& info : jobs) {
    if (!info.finished) continue;
    first = std::min(first.value_or(*info.finished), *info.finished);
    last = std::max(last.value_or(*info.finished), *info.finished);
  }
  if (!first) return "";
  return ", which died from " + relative_time(*first, now()) + " to " + relative_time(*last, now());
}

int delete_dead(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<JobInfo> jobs = chosen(client, call);
  if (jobs.empty()) {
    print(call, JsonObject().add("jobs", JsonArray()), "no dead jobs match\n");
    return kOk;
  }
  if (call.has(kDryRunFlag.name)) return print_plan(call, {"delete", "deleted"}, by_kind(jobs));
  confirm(call, "delete " + std::to_string(jobs.size()) + " dead jobs for good" + span_of(jobs));
  std::vector<JobId> ids;
  for (const JobInfo& info : jobs) ids.push_back(info.job.id);
  StatusLine status;
  std::vector<Status> statuses;
  for (std::size_t from = 0; from < ids.size(); from += kBatch) {
    status.show_progress(from, ids.size(), "deleting");
    const std::vector<JobId> some(ids.begin() + static_cast<std::ptrdiff_t>(from),
                                  ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), from + kBatch)));
    for (Status& each :
         ask<std::vector<Status>>([&](auto done) {
           client.inspector().cancel(some, {.state = JobState::kDead}, std::move(done));
         })) {
      statuses.push_back(std::move(each));
    }
  }
  status.clear();
  return print_statuses(call, "deleted", ids, statuses);
}

int export_dead(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  StatusLine status;
  status.show("reading dead jobs");
  const std::vector<JobInfo> jobs = dead_jobs(client, call, kNoLimit, true).jobs;
  status.clear();
  for (const JobInfo& info : jobs) print(job_json(info));
  return kOk;
}

std::vector<Flag> with_filters(std::vector<Flag> flags) {
  flags.insert(flags.begin(), {kLikeFlag, kMostFlag});
  flags.insert(flags.begin(), kFilterFlags.begin(), kFilterFlags.end());
  flags.push_back(kUrlFlag);
  return flags;
}

}  // namespace

std::vector<Command> dead_commands() {
  constexpr Argument kIds = {"ID", "of dead jobs; without any, the flags choose", true, true};
  constexpr Flag kAll = {"--all", "", "all dead jobs"};
  return {
      {.path = "dead list", .summary = "List dead jobs, newest first", .flags = with_filters({kCursorFlag, kJsonFlag}), .run = list_dead},
      {.path = "dead groups",
       .summary = "Group dead jobs by kind and error: how many, since when, an example",
       .details =
           "Numbers, ids, addresses and quoted texts in errors do not count. `dead replay --like GROUP` and `dead delete\n"
           "--like GROUP` act on one of them.",
       .flags = {kQueueFilter, kKindFilter, kErrorFilter, kSinceFilter, kUntilFilter, kUrlFlag, kJsonFlag},
       .run = list_groups},
      {.path = "dead show",
       .summary = "Show everything about one dead job",
       .arguments = {{"ID", "of the job"}},
       .flags = {kUrlFlag, kJsonFlag},
       .run = show_dead},
      {.path = "dead replay",
       .summary = "Put dead jobs back, with a fresh budget of attempts",
       .details =
           "With --canary N it replays N of them first, waits until they have been tried, and goes on only when\n"
           "none of them failed again. With --rate N it replays N a second, keeps looking at what becomes of\n"
           "them, and stops when at least 5, and more than 20% (--stop-at), of those that have been tried\n"
           "failed again. Failed again is what is dead again, or waits for another attempt after a fault. What\n"
           "has not been replayed by then stays dead, and the exit status is 1. With neither flag all are\n"
           "replayed at once, and nobody looks. A worker must be running for any of them to be tried.",
       .arguments = {kIds},
       .flags = with_filters({kAll,
                              {"--keep-attempts", "", "keep the old counters: the budget is not fresh"},
                              {"--rate", "N", "so many a second, 1 to 1000000; default: all at once"},
                              {"--canary", "N", "try with so many first, 1 to 1000; default: none"},
                              {"--stop-at", "PERCENT", "with --rate, 0 to 100: 100 is never; default: 20"},
                              {"--timeout", "DURATION", "how long to wait for the canaries; default: 30s"},
                              kDryRunFlag,
                              kJsonFlag}),
       .run = replay_dead},
      {.path = "dead delete",
       .summary = "Delete dead jobs for good",
       .details = "`--until 1w` deletes those that died more than a week ago; `--since 1w` those of the last week.",
       .arguments = {kIds},
       .flags = with_filters({kAll, kDryRunFlag, kYesFlag, kJsonFlag}),
       .run = delete_dead},
      {.path = "dead export",
       .summary = "Write dead jobs to stdout, one JSON object a line",
       .flags = with_filters({{"--json", "", "changes nothing: it is JSON already"}}),
       .run = export_dead},
  };
}

}  // namespace bide::cli
