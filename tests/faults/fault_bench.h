// FaultBench: a data directory, worker processes on it that can be harmed, and a client of the test's own.

#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bide/client.h"
#include "bide/wait.h"
#include "crash/checker.h"
#include "crash/processes.h"
#include "crash/read_back.h"
#include "support/temporary_directory.h"

namespace bide::faults {

using namespace std::chrono_literals;

// How long to wait for what must come; only a broken program uses it up.
inline constexpr std::chrono::seconds kPatience{120};

// The whole suite runs with a worker that owns the data directory, and with one that is a guest of the test.
enum class Role { kOwner, kGuest };
inline std::string name_of(const testing::TestParamInfo<Role>& info) {
  return info.param == Role::kOwner ? "owner" : "guest";
}

class FaultBench : public testing::Test {
 protected:
  // Opened by the first call: whoever opens first is the owner.
  Client& client() {
    if (!client_) {
      auto opened = Client::open(url_);
      if (!opened) throw std::runtime_error(opened.error().message);
      client_.emplace(*opened);
    }
    return *client_;
  }
  void leave() {
    if (client_) client_->close();
    client_.reset();
  }

  crash::Processes& processes() { return processes_; }
  // Returns when it has opened the data directory and runs.
  void start_worker(const std::string& name, std::vector<std::string> options = {}) {
    options.insert(options.begin(), "work");
    processes_.spawn(name, options);
    ASSERT_TRUE(eventually([&] { return events(name, "working") > 0; })) << name << " does not start";
  }

  JobId enqueue(const std::string& kind, const std::string& body, EnqueueOptions options = {}) {
    return client().enqueue(kind, body, options).value();
  }
  std::vector<JobId> enqueue_many(int count, const std::string& kind, const std::string& body) {
    std::vector<JobId> ids;
    std::vector<Job> jobs(static_cast<std::size_t>(count), make_job(kind, body, {}));
    for (const auto& id : client().enqueue(std::move(jobs))) ids.push_back(id.value());
    return ids;
  }
  JobInfo find(JobId id) { return client().find(id).value(); }
  bool is(JobId id, JobState state) { return find(id).state == state; }
  AuditReport audit() {
    return wait<AuditReport>([&](auto done) { client().inspector().audit(std::move(done)); }).value();
  }

  std::uint64_t events(const std::string& process, const std::string& what) const {
    return crash::count_events(histories_.path(), process, what);
  }
  bool said(const std::string& process, const std::string& what, const std::string& word) const {
    for (const crash::Event& event : crash::read_histories(histories_.path())) {
      if (event.process != process || event.what != what) continue;
      if (event.subject == word) return true;
      for (const std::string& other : event.more) {
        if (other == word) return true;
      }
    }
    return false;
  }

  static bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds patience = kPatience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }

  support::TemporaryDirectory directory_;
  support::TemporaryDirectory histories_;
  const std::string url_ = "bide:" + directory_.path() + "/store";

 private:
  crash::Processes processes_{BIDE_CRASH_CHILD, url_, histories_.path()};
  std::optional<Client> client_;
};

}  // namespace bide::faults
