#include "cli/demo_shop.h"

#include <signal.h>
#include <unistd.h>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bide/wait.h"
#include "core/duration.h"

namespace bide::cli {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kOrderEvery = 100ms;
constexpr std::chrono::milliseconds kMailServerBack = 4s;
constexpr int kWrongAddress = 13;
constexpr int kSlowBank = 7;
constexpr int kPoisonInvoice = 21;

std::string number(int order) { return std::to_string(order); }

Job job_of(std::string kind, std::string queue, std::string body, Milliseconds delay, RetryPolicy retry) {
  Job job;
  job.kind = std::move(kind);
  job.queue = std::move(queue);
  job.body = std::move(body);
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

}  // namespace

DemoShop::DemoShop(Client client, DemoShopOptions options) : client_(std::move(client)), options_(std::move(options)) {}

std::chrono::milliseconds DemoShop::since_opening() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - options_.opened);
}

Status DemoShop::take_orders() {
  std::vector<Job> jobs;
  for (int order = 1; order <= kOrders; ++order) {
    jobs.push_back(job_of("order", "orders", number(order), kOrderEvery * order, RetryPolicy::exponential(500ms)));
  }
  jobs.push_back(job_of("charge_card", "payments", number(kSlowBank), 1s, RetryPolicy::steps({500ms, 1s, 2s})));
  jobs.push_back(job_of("render_invoice", "invoices", number(kPoisonInvoice), 2s, RetryPolicy::fixed(500ms, 10)));
  jobs.push_back(job_of("remind", "mail", "the shop closes", 10s, RetryPolicy{}));
  for (const auto& result : client_.enqueue(std::move(jobs))) {
    if (!result) return result.error();
  }
  return {};
}

void DemoShop::set_up(Worker& worker) {
  worker.handle("order", [](std::string_view order, Context& context) {
    std::this_thread::sleep_for(20ms);
    // Both become real together with this order's outcome, or not at all.
    const RetryPolicy until_it_works = RetryPolicy::exponential(250ms, 2, 2s, 20);
    context.enqueue("send_mail", order, {.queue = "mail", .retry = until_it_works}).value();
    context.enqueue("pack", order, {.queue = "warehouse", .delay = 1s}).value();
  });
  worker.handle("send_mail", [this] {
    if (since_opening() < kMailServerBack) throw std::runtime_error("mail server: connection refused");
    std::this_thread::sleep_for(5ms);
  });
  worker.handle("charge_card", [](Context& context) {
    if (context.attempt() < 4) throw std::runtime_error("bank: try again later");
    context.set_result("paid");
  });
  worker.handle("pack", [this](std::string_view order) -> Outcome {
    if (order == number(kWrongAddress) && !address_corrected_) return dead("there is no such street");
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
    options_.tell("the reminder that was asked for ten seconds ago: " + std::string(text));
  });

  auto mails_down = std::make_shared<std::atomic<int>>(0);
  worker.on_outcome([this, mails_down](const Finished& finished) {
    const bool done = std::holds_alternative<Done>(finished.outcome);
    const std::string& kind = finished.job.kind;
    if (kind == "send_mail" && !done && mails_down->fetch_add(1) == 0) {
      options_.tell("mail fails: " + what_next(finished.outcome) + ", then longer; the orders go on");
    } else if (kind == "send_mail" && done && mails_down->exchange(-1'000'000) > 0) {
      options_.tell("the mail server is back: the mails go out");
    } else if (kind == "charge_card" || (kind == "pack" && std::holds_alternative<Dead>(finished.outcome))) {
      options_.tell(kind + " of order " + finished.job.body + ", attempt " + std::to_string(finished.attempt) + ": " +
                    what_next(finished.outcome));
    }
  });
  worker.on_problem([this](std::string_view line) { options_.tell(std::string(line)); });
}

Status DemoShop::work(const std::function<void(const std::vector<QueueInfo>&)>& busy) {
  Worker worker(client_, {.queues = {{"orders", 3}, "mail", "payments", "warehouse", "invoices"},
                          .concurrency = 4,
                          .name = "demo"});
  set_up(worker);
  if (Status started = worker.start(); !started) return started;
  for (;;) {
    const auto queues =
        wait<std::vector<QueueInfo>>([&](auto done) { client_.inspector().queues(std::move(done)); });
    if (!queues) return queues.error();
    busy(*queues);
    bool finished = true;
    for (const QueueInfo& queue : *queues) finished = finished && queue.scheduled + queue.ready + queue.running == 0;
    if (finished) break;
    std::this_thread::sleep_for(100ms);
  }
  worker.stop();
  return {};
}

Status DemoShop::correct_address() {
  address_corrected_ = true;
  JobFilter filter;
  filter.states = {JobState::kDead};
  filter.kind = "pack";
  Inspector& inspector = client_.inspector();
  const auto page = wait<JobPage>([&](auto done) { inspector.list(filter, "", 10, std::move(done)); });
  if (!page) return page.error();
  std::vector<JobId> ids;
  for (const JobInfo& info : page->jobs) ids.push_back(info.job.id);
  const auto replayed =
      wait<std::vector<Status>>([&](auto done) { inspector.replay(ids, ReplayOptions{}, std::move(done)); });
  if (!replayed) return replayed.error();
  for (const Status& status : *replayed) {
    if (!status) return status;
  }
  options_.tell("the address of order " + number(kWrongAddress) + " is put right, its job replayed");
  return {};
}

}  // namespace bide::cli
