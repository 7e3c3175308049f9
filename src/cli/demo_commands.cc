// bide demo. The shop runs in a child process, because one of its jobs kills it; this one starts it again.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "bide/client.h"
#include "bide/worker.h"
#include "cli/command.h"
#include "cli/demo_server.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/duration.h"

namespace bide::cli {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kMostStarts = 10;  // Three deaths are planned; more would be a mistake of ours.
constexpr int kOrders = 40;
constexpr auto kOrderEvery = 100ms;
constexpr auto kMailServerBack = 4s;
constexpr int kWrongAddress = 13;
constexpr int kSlowBank = 7;
constexpr int kPoisonInvoice = 21;

Job job_of(std::string kind, std::string queue, int order, Milliseconds delay, RetryPolicy retry) {
  Job job;
  job.kind = std::move(kind);
  job.queue = std::move(queue);
  job.body = std::to_string(order);
  job.delay = delay;
  job.retry = std::move(retry);
  return job;
}

std::string what_next(const Outcome& outcome) {
  if (const auto* retry = std::get_if<RetryAt>(&outcome)) {
    return retry->error + "; again in " + core::format_duration(retry->after);
  }
  if (const auto* end = std::get_if<Dead>(&outcome)) return end->error + "; to the dead set, for a human";
  return "done";
}

// A shop's evening in jobs. Orders come in, each enqueues its mail and its parcel as effects; the mail server is down for a
// while; a bank wants to be asked three times; one invoice kills whoever renders it; one address is wrong.
class DemoShop {
 public:
  // `opened`: when the evening began; it outlives a killed worker.
  DemoShop(Client client, Clock::time_point opened, std::function<void(const std::string& line)> tell)
      : client_(std::move(client)), opened_(opened), tell_(std::move(tell)) {}

  // Everything that is ordered this evening, with its due times. Once for a store.
  void take_orders() {
    std::vector<Job> jobs;
    for (int order = 1; order <= kOrders; ++order) {
      jobs.push_back(job_of("order", "orders", order, kOrderEvery * order, RetryPolicy::exponential(500ms)));
    }
    jobs.push_back(job_of("charge_card", "payments", kSlowBank, 1s, RetryPolicy::steps({500ms, 1s, 2s})));
    jobs.push_back(job_of("render_invoice", "invoices", kPoisonInvoice, 2s, RetryPolicy::fixed(500ms, 10)));
    jobs.push_back(job_of("remind", "mail", 0, 10s, RetryPolicy{}));
    jobs.back().body = "the shop closes";
    for (const auto& result : client_.enqueue(std::move(jobs))) (void)take(result);
    tell_(std::to_string(kOrders) + " orders, a payment, an invoice and a reminder are enqueued, and durable");
  }

  // Works until nothing waits and nothing runs. `busy` is called several times a second meanwhile.
  void work(const std::function<void(const std::vector<QueueInfo>&)>& busy) {
    Worker worker(client_, {.queues = {{"orders", 3}, "mail", "payments", "warehouse", "invoices"},
                            .concurrency = 4,
                            .name = "demo"});
    set_up(worker);
    take(worker.start());
    const auto is_empty = [](const QueueInfo& queue) { return queue.scheduled + queue.ready + queue.running == 0; };
    for (;;) {
      const std::vector<QueueInfo> queues = queues_of(client_);
      busy(queues);
      if (std::all_of(queues.begin(), queues.end(), is_empty)) break;
      std::this_thread::sleep_for(100ms);
    }
    worker.stop();
  }

  // Puts the wrong address right and replays its job.
  void correct_address() {
    address_corrected_ = true;
    std::vector<JobId> ids;
    for (const JobInfo& info : list_all(client_, {.states = {JobState::kDead}, .kind = "pack"}, 10).jobs) {
      ids.push_back(info.job.id);
    }
    for (const Status& status : ask<std::vector<Status>>(
             [&](auto done) { client_.inspector().replay(ids, ReplayOptions{}, std::move(done)); })) {
      take(status);
    }
    tell_("the address of order " + std::to_string(kWrongAddress) + " is put right, its job replayed");
  }

 private:
  void set_up(Worker& worker) {
    worker.handle("order", [](std::string_view order, Context& context) {
      std::this_thread::sleep_for(20ms);
      // Both become real together with this order's outcome, or not at all.
      const RetryPolicy until_it_works = RetryPolicy::exponential(250ms, 2, 2s, 20);
      context.enqueue("send_mail", order, {.queue = "mail", .retry = until_it_works}).value();
      context.enqueue("pack", order, {.queue = "warehouse", .delay = 1s}).value();
    });
    worker.handle("send_mail", [this] {
      if (Clock::now() - opened_ < kMailServerBack) throw std::runtime_error("mail server: connection refused");
      std::this_thread::sleep_for(5ms);
    });
    worker.handle("charge_card", [](Context& context) {
      if (context.attempt() < 4) throw std::runtime_error("bank: try again later");
      context.set_result("paid");
    });
    worker.handle("pack", [this](std::string_view order) -> Outcome {
      if (order == std::to_string(kWrongAddress) && !address_corrected_) return dead("there is no such street");
      std::this_thread::sleep_for(10ms);
      return Done{};
    });
    worker.handle("render_invoice", [] {
      // Orders that were caught in the last death get done before the next one: they are not to blame.
      std::this_thread::sleep_for(150ms);
      // Not an exception: the whole process, as a bug in a C library would.
      ::kill(::getpid(), SIGKILL);
    });
    worker.handle("remind", [this](std::string_view text) {
      tell_("the reminder that was asked for ten seconds ago: " + std::string(text));
    });

    auto mails_down = std::make_shared<std::atomic<int>>(0);
    worker.on_outcome([this, mails_down](const Finished& finished) {
      const bool done = std::holds_alternative<Done>(finished.outcome);
      const std::string& kind = finished.job.kind;
      if (kind == "send_mail" && !done && mails_down->fetch_add(1) == 0) {
        tell_("mail fails: " + what_next(finished.outcome) + ", then longer; the orders go on");
      } else if (kind == "send_mail" && done && mails_down->exchange(-1'000'000) > 0) {
        tell_("the mail server is back: the mails go out");
      } else if (kind == "charge_card" || (kind == "pack" && std::holds_alternative<Dead>(finished.outcome))) {
        tell_(kind + " of order " + finished.job.body + ", attempt " + std::to_string(finished.attempt) + ": " +
              what_next(finished.outcome));
      }
    });
    worker.on_problem([this](std::string_view line) { tell_(std::string(line)); });
  }

  Client client_;
  const Clock::time_point opened_;
  const std::function<void(const std::string& line)> tell_;
  bool address_corrected_ = false;
};

std::string demo_directory(const Invocation& call) {
  if (const auto directory = call.value("--dir")) return *directory;
  std::error_code ignored;
  std::filesystem::path inside = std::filesystem::temp_directory_path(ignored);
  if (ignored) inside = "/tmp";
  std::string path = (inside / "bide-demo-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw Failure{kCannotMake, "cannot make a directory in " + inside.string()};
  return path;
}

// What became of the jobs of one kind.
struct KindSummary {
  std::uint64_t jobs = 0;
  std::uint64_t at_once = 0;   // Done in the first attempt.
  std::uint64_t retried = 0;   // Done in a later one.
  std::uint64_t dead = 0;
  std::uint64_t open = 0;
  std::uint64_t attempts = 0;
};

std::string summary(const Client& client, double seconds, bool json) {
  std::map<std::string, KindSummary> kinds;
  for (const JobInfo& info : list_all(client, {.bodies = false}, 1'000'000).jobs) {
    KindSummary& kind = kinds[info.job.kind];
    ++kind.jobs;
    kind.attempts += info.attempts;
    if (info.state == JobState::kDead) {
      ++kind.dead;
    } else if (info.state != JobState::kDone) {
      ++kind.open;
    } else if (info.attempts <= 1) {
      ++kind.at_once;
    } else {
      ++kind.retried;
    }
  }
  constexpr auto kRight = Table::Align::kRight;
  Table table({"kind", "jobs", "done at once", "done after retries", "dead", "open", "attempts"},
              {Table::Align::kLeft, kRight, kRight, kRight, kRight, kRight, kRight});
  JsonObject by_kind;
  for (const auto& [name, kind] : kinds) {
    by_kind.add(name, JsonObject()
                          .add("jobs", kind.jobs)
                          .add("done_at_once", kind.at_once)
                          .add("done_after_retries", kind.retried)
                          .add("dead", kind.dead)
                          .add("open", kind.open)
                          .add("attempts", kind.attempts));
    table.row({name, std::to_string(kind.jobs), std::to_string(kind.at_once), std::to_string(kind.retried),
               std::to_string(kind.dead), std::to_string(kind.open), std::to_string(kind.attempts)});
  }
  const AuditReport audit = audit_of(client);
  if (!json) return "\n" + table.text() + "\n" + audit_text(audit);
  return JsonObject().add("seconds", seconds).add("kinds", by_kind).raw("audit", wire::audit_json(audit)).text() + "\n";
}

class DemoRun {
 public:
  DemoRun(std::string url, bool json) : url_(std::move(url)), json_(json) {}

  void tell(const std::string& line) {
    status_.clear();
    if (json_) return;
    std::printf("%5.1fs  %s\n", seconds(), for_people(line).c_str());
    std::fflush(stdout);
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - opened_).count(); }

  // In the child.
  void run(bool first) {
    DemoShop shop(open_client(url_, Missing::kCreate), opened_, [this](const std::string& line) { tell(line); });
    const auto busy = [this](const std::vector<QueueInfo>& queues) { show_progress(queues); };
    if (first) shop.take_orders();
    shop.work(busy);
    shop.correct_address();
    shop.work(busy);
    status_.clear();
  }

  // True when it ended by itself, see exit_code(); false when it was killed.
  bool run_in_child(bool first) {
    std::fflush(nullptr);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) throw Failure{kInternal, "cannot start a process"};
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(kInternal);
      ::_exit(run_reporting(first));
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
      if (WTERMSIG(status) != SIGKILL) throw Failure{kInternal, "the demo was ended by a signal"};
      return false;
    }
    exit_code_ = WEXITSTATUS(status);
    return true;
  }
  // Of the child, which has told why it is not 0.
  int exit_code() const { return exit_code_; }

 private:
  int run_reporting(bool first) {
    int exit_code = kOk;
    try {
      run(first);
    } catch (const Failure& failure) {
      exit_code = report(failure, json_);
    }
    std::fflush(nullptr);
    return exit_code;
  }

  void show_progress(const std::vector<QueueInfo>& queues) {
    std::uint64_t done = 0, dead = 0, open = 0;
    for (const QueueInfo& queue : queues) {
      done += queue.done;
      dead += queue.dead;
      open += queue.scheduled + queue.ready + queue.running;
    }
    status_.show_progress(done + dead, done + dead + open,
                          std::to_string(done) + " done, " + std::to_string(open) + " waiting or running, " +
                              std::to_string(dead) + " dead");
  }

  const std::string url_;
  const bool json_;
  int exit_code_ = kOk;
  const Clock::time_point opened_ = Clock::now();
  StatusLine status_;
};

int demo(const Invocation& call) {
  const std::string directory = demo_directory(call);
  const std::string url = url_of_directory(directory);
  // What is wrong with the place is said before the shop opens.
  (void)open_client(url, Missing::kCreate);
  if (call.has("--serve")) return serve_demo(url, call.value("--listen").value_or("127.0.0.1:7070"));
  DemoRun run(url, call.json());
  run.tell("a shop opens; its jobs live in " + directory);
  int deaths = 0;
  for (bool first = true; !run.run_in_child(first); first = false) {
    if (++deaths >= kMostStarts) throw Failure{kInternal, "the demo was killed again and again"};
    run.tell("an invoice has killed the process that rendered it (kill -9); the store is opened again");
  }
  if (run.exit_code() != kOk) return run.exit_code();
  const Client client = open_client(url, Missing::kRefuse);
  if (deaths > 0) run.tell("the invoice is dead as poison after " + std::to_string(deaths) + " deaths; the rest went on");
  print(summary(client, run.seconds(), call.json()));
  if (!call.json()) {
    std::printf("\nTry next:  bide dead list --url %s\n           bide job list --url %s --limit 10\n", url.c_str(),
                url.c_str());
  }
  return kOk;
}

}  // namespace

std::vector<Command> demo_commands() {
  return {{.path = "demo",
           .summary = "Watch a shop's evening: orders, failures, a poison job, a reminder",
           .details = "It takes a quarter of a minute. The data directory is kept, so that other commands can be tried on it.\n\n"
                      "With --serve the shop stays open until Ctrl-C, behind a server with the dashboard.",
           .flags = {{"--serve", "", "a shop that stays open, and the dashboard to watch it"},
                     {"--listen", "ADDRESS", "HOST:PORT of the dashboard; default: 127.0.0.1:7070"},
                     {"--dir", "DIR", "where the jobs shall live; default: a new temporary directory"}, kJsonFlag},
           .run = demo}};
}

}  // namespace bide::cli
