// bide demo. The shop runs in a child process, because one of its jobs kills it; this one starts it again.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "cli/command_groups.h"
#include "cli/demo_shop.h"
#include "cli/demo_summary.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/open_store.h"
#include "cli/say.h"
#include "cli/terminal.h"

namespace bide::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostStarts = 10;  // Three deaths are planned; more would be a mistake of ours.

std::string demo_directory(const Invocation& call) {
  if (const auto directory = call.value("--dir")) return *directory;
  std::error_code ignored;
  std::filesystem::path inside = std::filesystem::temp_directory_path(ignored);
  if (ignored) inside = "/tmp";
  std::string path = (inside / "bide-demo-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw Failure{kCannotMake, "cannot make a directory in " + inside.string()};
  return path;
}

class Evening {
 public:
  Evening(std::string url, bool json) : url_(std::move(url)), json_(json) {}

  void tell(const std::string& line) {
    status_.clear();
    if (json_) return;
    std::printf("%5.1fs  %s\n", seconds(), for_people(line).c_str());
    std::fflush(stdout);
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - opened_).count(); }

  // In the child.
  void run(bool first) {
    DemoShop shop(open_client(url_, Missing::kCreate),
                  {.opened = opened_, .tell = [this](const std::string& line) { tell(line); }});
    if (first) {
      take(shop.take_orders());
      tell(std::to_string(DemoShop::kOrders) + " orders, a payment, an invoice and a reminder are enqueued, and durable");
    }
    const auto busy = [this](const std::vector<QueueInfo>& queues) { show_progress(queues); };
    take(shop.work(busy));
    take(shop.correct_address());
    take(shop.work(busy));
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
      if (json_) {
        std::fprintf(stderr, "%s\n", to_json(failure).c_str());
      } else {
        cli::tell("error: " + failure.message);
      }
      exit_code = failure.exit_code;
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
    const double all = static_cast<double>(done + dead + open);
    status_.show(progress_bar(all > 0 ? static_cast<double>(done + dead) / all : 0) + " " + std::to_string(done) +
                 " done, " + std::to_string(open) + " waiting or running, " + std::to_string(dead) + " dead");
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
  Evening evening(url, call.json());
  evening.tell("a shop opens; its jobs live in " + directory);
  int deaths = 0;
  for (bool first = true; !evening.run_in_child(first); first = false) {
    if (++deaths >= kMostStarts) throw Failure{kInternal, "the demo was killed again and again"};
    evening.tell("an invoice has killed the process that rendered it (kill -9); the store is opened again");
  }
  if (evening.exit_code() != kOk) return evening.exit_code();
  const Client client = open_client(url, Missing::kRefuse);
  if (deaths > 0) evening.tell("the invoice is dead as poison after " + std::to_string(deaths) + " deaths; the rest went on");
  const std::string summary = demo_summary(client, evening.seconds(), call.json());
  std::printf("%s%s", call.json() ? "" : "\n", summary.c_str());
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
           .details = "It takes a quarter of a minute. The data directory is kept, so that other commands can be tried on it.",
           .flags = {{"--dir", "DIR", "where the jobs shall live; default: a new temporary directory"}, kJsonFlag},
           .run = demo}};
}

}  // namespace bide::cli
