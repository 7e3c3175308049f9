#include "cli/demo_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bide/client.h"
#include "bide/flow.h"
#include "bide/worker.h"
#include "cli/failure.h"
#include "cli/open_client.h"

namespace bide::cli {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kServedOrderEvery = 400ms;    // On average, and more at some times than at others.
constexpr auto kMailCycle = 3min;      // In the last quarter of a minute of it the mail server is down.
constexpr auto kPoisonEvery = 2min;
constexpr auto kBulkOrderEvery = 25s;

// Handlers of the shop. What they do is to wait, and to fail as such things fail.
class ServedShop {
 public:
  explicit ServedShop(const std::string& url) : client_(open_client(url, Missing::kCreate)) {}

  [[noreturn]] void run() {
    std::vector<std::unique_ptr<Worker>> workers;
    workers.push_back(worker_for("till-1", {{"orders", 3}, "payments"}, 4));
    workers.push_back(worker_for("mailer-1", {"mail"}, 4));
    workers.push_back(worker_for("warehouse-1", {"warehouse", "invoices"}, 6));
    set_up_till(*workers[0]);
    set_up_mailer(*workers[1]);
    set_up_warehouse(*workers[2]);
    for (const auto& worker : workers) take(worker->start());
    schedule_reminders();
    set_up_schedules();
    auto poison_due = Clock::now() + 20s;
    auto bulk_due = Clock::now() + 2s;
    for (std::uint64_t minute_part = 0;; ++minute_part) {
      order();
      if (Clock::now() >= poison_due) {
        poison_due += kPoisonEvery;
        // Dead as poison once it has killed three workers.
        enqueue("render_invoice", "invoices", R"({"order":21,"pages":"endless"})", {.retry = RetryPolicy::fixed(5s, 10)});
      }
      if (Clock::now() >= bulk_due) {
        bulk_due += kBulkOrderEvery;
        bulk_order();
      }
      // Busy for half a minute, quiet for the next.
      const auto pause = minute_part / 100 % 2 == 0 ? kServedOrderEvery / 2 : kServedOrderEvery;
      std::this_thread::sleep_for(pause * (50 + pick(100)) / 100);
    }
  }

 private:
  static std::unique_ptr<Worker> make(Client& client, WorkerOptions options) {
    return std::make_unique<Worker>(client, std::move(options));
  }
  std::unique_ptr<Worker> worker_for(std::string name, std::vector<WorkerQueue> queues, int concurrency) {
    auto worker = make(client_, {.queues = std::move(queues), .concurrency = concurrency, .name = std::move(name)});
    worker->on_problem([](std::string_view) {});
    return worker;
  }

  static int pick(int below) {
    thread_local std::mt19937 random{std::random_device{}()};
    return static_cast<int>(random() % static_cast<unsigned>(below));
  }

  void enqueue(const char* kind, const char* queue, const std::string& body, EnqueueOptions options) {
    options.queue = queue;
    options.content_type = "application/json";
    // While the server is away there is nothing to order from.
    (void)client_.enqueue(kind, body, options);
  }

  void order() {
    static constexpr std::array kWares = {"teapot", "lamp", "atlas", "kettle", "globe", "clock"};
    const int number = ++last_order_;
    const std::string body = R"({"order":)" + std::to_string(number) + R"(,"ware":")" + kWares[static_cast<std::size_t>(pick(6))] +
                             R"(","count":)" + std::to_string(1 + pick(3)) + R"(,"customer":{"name":"Kim","city":"Lund"}})";
    enqueue("order", "orders", body, {.headers = {{"source", pick(3) == 0 ? "phone" : "web"}}});
    if (pick(6) == 0) enqueue("charge_card", "payments", body, {.retry = RetryPolicy::steps({3s, 8s, 20s})});
  }

  // A flow: shelves are looked through beside one another, and what was found is shipped together.
  void bulk_order() {
    const std::string body = R"({"order":)" + std::to_string(++last_order_) + R"(,"customer":{"name":"Sam","city":"Turku"}})";
    const EnqueueOptions options{.queue = "warehouse", .retry = RetryPolicy::fixed(5s, 4), .content_type = "application/json"};
    Flow flow;
    const JobId check = flow.add("check_stock", body, options);
    EnqueueOptions behind = options;
    behind.after = {check};
    std::vector<JobId> gathered;
    for (int shelf = 0; shelf < 4; ++shelf) gathered.push_back(flow.add("gather", body, behind));
    behind.after = std::move(gathered);
    behind.after = {flow.add("wrap", body, behind)};
    behind.queue = "mail";
    flow.add("tell_customer", body, behind);
    (void)flow.start(client_);
  }

  void set_up_schedules() {
    const auto job = [](const char* kind, const char* queue) {
      Job made;
      made.kind = kind;
      made.queue = queue;
      return made;
    };
    // Put at every start: the second time they stay as they are.
    (void)client_.put_schedule({.name = "count-stock", .every = 20s, .job = job("count_stock", "warehouse"), .overlap = Overlap::kSkip});
    (void)client_.put_schedule({.name = "offers", .cron = "* * * * *", .zone = "Europe/Stockholm", .job = job("send_offers", "mail")});
    (void)client_.put_schedule(
        {.name = "close-the-books", .cron = "30 2 * * mon-fri", .zone = "Europe/Berlin", .job = job("close_the_books", "payments")});
    (void)client_.put_rules({.queue = "payments", .at_once = 3, .rate = {.count = 10, .burst = 5}});
  }

  void schedule_reminders() {
    for (const auto delay : std::vector<Milliseconds>{15min, 1h, 6h, 24h}) {
      enqueue("remind", "mail", R"({"text":"the shop closes"})", {.delay = delay, .unique_key = "remind " + std::to_string(delay.count())});
    }
  }

  static void set_up_till(Worker& worker) {
    worker.handle("order", [](std::string_view order, Context& context) {
      std::this_thread::sleep_for(20ms + 1ms * pick(60));
      // Both become real together with this order's outcome, or not at all.
      (void)context.enqueue("send_mail", order, {.queue = "mail", .retry = RetryPolicy::exponential(2s, 2, 20s, 12)});
      (void)context.enqueue("pack", order, {.queue = "warehouse", .delay = 2s, .retry = RetryPolicy::fixed(4s, 3)});
    });
    worker.handle("close_the_books", [] {});
    worker.handle("charge_card", [](Context& context) {
      std::this_thread::sleep_for(50ms + 1ms * pick(200));
      if (pick(3) == 0) throw std::runtime_error("bank: timeout after " + std::to_string(3'000 + pick(900)) + " ms, try again later");
      if (pick(25) == 0) throw std::runtime_error("bank: card " + std::to_string(4'000 + pick(999)) + " was declined");
      context.set_result("paid");
    });
  }

  static void set_up_mailer(Worker& worker) {
    const auto opened = Clock::now();
    worker.handle("send_mail", [opened] {
      std::this_thread::sleep_for(5ms + 1ms * pick(40));
      const auto into = (Clock::now() - opened) % kMailCycle;
      if (into > kMailCycle - 15s || pick(40) == 0) throw std::runtime_error("mail server 10.0.0.7:25: connection refused");
    });
    for (const char* kind : {"remind", "send_offers", "tell_customer"}) worker.handle(kind, [](Context&) { std::this_thread::sleep_for(40ms); });
  }

  static void set_up_warehouse(Worker& worker) {
    worker.handle("pack", [](std::string_view) -> Outcome {
      std::this_thread::sleep_for(30ms + 1ms * pick(120));
      if (pick(60) == 0) return dead("there is no such street: 'Elm Street " + std::to_string(pick(90)) + "'");
      if (pick(30) == 0) throw std::runtime_error("shelf " + std::to_string(pick(40)) + " is empty");
      return Done{};
    });
    worker.handle("check_stock", [] { std::this_thread::sleep_for(400ms); });
    worker.handle("count_stock", [] { std::this_thread::sleep_for(600ms); });
    worker.handle("gather", [](Context& context) {
      constexpr int kShelves = 8;
      for (int shelf = 1; shelf <= kShelves && !context.stop_token().stop_requested(); ++shelf) {
        context.progress(static_cast<double>(shelf) / kShelves, "shelf " + std::to_string(shelf));
        std::this_thread::sleep_for(200ms + 1ms * pick(200));
      }
      if (pick(8) == 0) throw std::runtime_error("shelf " + std::to_string(pick(40)) + " is empty");
    });
    worker.handle("wrap", [](Context& context) {
      if (!context.step("print label", [] { return std::string("label 4711"); })) throw std::runtime_error("the printer is off");
      std::this_thread::sleep_for(500ms);
      if (pick(6) == 0) throw std::runtime_error("there is no paper left");
    });
    worker.handle("render_invoice", [] {
      std::this_thread::sleep_for(150ms);
      // Not an exception: the whole process, as a bug in a C library would.
      ::kill(::getpid(), SIGKILL);
    });
  }

  Client client_;
  std::atomic<int> last_order_ = 1'000;
};

sigset_t waited_for() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) ::sigaddset(&signals, signal);
  return signals;
}

// Ends with us, however we end.
template <class Body>
pid_t start_process(Body body) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw Failure{kInternal, "cannot start a process"};
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kInternal);
  const sigset_t signals = waited_for();
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  ::_exit(body());
}

pid_t start_server(const std::string& store_url, const std::string& listen) {
  return start_process([&] {
    const char* const words[] = {"bide", "serve", "--local-without-token", "--listen", listen.c_str(),
                                 "--url", store_url.c_str(), nullptr};
    ::execv("/proc/self/exe", const_cast<char* const*>(words));
    return static_cast<int>(kInternal);
  });
}

pid_t start_shop(const std::string& url) {
  return start_process([&] {
    try {
      ServedShop(url).run();
    } catch (const Failure& failure) {
      return report(failure, false);
    }
  });
}

}  // namespace

int serve_demo(const std::string& store_url, const std::string& listen) {
  const sigset_t signals = waited_for();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const std::string url = "http://" + listen;
  const pid_t server = start_server(store_url, listen);
  pid_t shop = start_shop(url);
  std::printf("a shop is open; watch it at %s/ (Ctrl-C closes it)\n", url.c_str());
  std::fflush(stdout);
  for (;;) {
    int signal = 0;
    ::sigwait(&signals, &signal);
    if (signal != SIGCHLD) break;
    int status = 0;
    if (::waitpid(server, &status, WNOHANG) == server) {
      ::kill(shop, SIGKILL);
      ::waitpid(shop, nullptr, 0);
      return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(kInternal);
    }
    if (::waitpid(shop, &status, WNOHANG) != shop) continue;
    if (WIFEXITED(status)) {
      // It has said why.
      ::kill(server, SIGTERM);
      ::waitpid(server, nullptr, 0);
      return WEXITSTATUS(status);
    }
    std::printf("an invoice has killed the process that rendered it (kill -9); the workers are started again\n");
    std::fflush(stdout);
    std::this_thread::sleep_for(1s);
    shop = start_shop(url);
  }
  ::kill(shop, SIGKILL);
  ::kill(server, SIGTERM);
  ::waitpid(shop, nullptr, 0);
  ::waitpid(server, nullptr, 0);
  return kOk;
}

}  // namespace bide::cli
