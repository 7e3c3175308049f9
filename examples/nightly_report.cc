// nightly_report: a report for the day before, made each night at half past two in Berlin, also when the clock changes.

#include <algorithm>
#include <chrono>
#include <future>
#include <iostream>
#include <vector>

#include "bide/bide.h"

int main() {
  using namespace std::chrono_literals;
  auto client = bide::Client::open("bide:./nightly.data").value();

  // At every start of the program: the second time it stays as it is.
  const bide::Schedule nightly{.name = "nightly-report",
                               .owner = "reports",
                               .cron = "30 2 * * *",
                               .zone = "Europe/Berlin",
                               .job = {.kind = "report", .queue = "reports"},
                               .overlap = bide::Overlap::kSkip};
  std::cout << (client.put_schedule(nightly).value().created ? "made" : "there already") << std::endl;
  std::cout << (client.put_schedule(nightly).value().created ? "made" : "there already") << std::endl;

  std::promise<void> reported;
  bide::Worker worker(client, {.queues = {"reports"}});
  worker.handle("report", [&](const bide::Job& job) {
    const auto due = std::find_if(job.headers.begin(), job.headers.end(),
                                  [](const auto& header) { return header.first == "bide-schedule-due"; });
    std::cout << "reporting " << (due == job.headers.end() ? "by hand" : "the night of " + due->second) << std::endl;
    reported.set_value();
  });
  worker.start().value();

  // Nobody wants to wait for the night here.
  client.run_schedule("nightly-report").value();
  reported.get_future().wait();

  const std::vector<bide::ScheduleInfo> schedules = client.schedules().value();
  for (const bide::ScheduleInfo& info : schedules) {
    const bool is_soon = info.next && *info.next < std::chrono::system_clock::now() + 49h;
    std::cout << info.schedule.name << " was run " << info.last.size() << " time, "
              << (is_soon ? "and is due within two days" : "and is not due") << std::endl;
  }
  client.remove_schedule("nightly-report").value();
}
