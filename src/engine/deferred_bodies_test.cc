// Large bodies are read by another thread than the engine's; what comes of it is the same.

#include "engine/deferred_bodies.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bide/wait.h"
#include "engine/engine.h"
#include "support/temporary_directory.h"

namespace bide::engine {
namespace {

using Answers = std::vector<Result<Enqueued>>;

class LateReads : public testing::Test {
 protected:
  LateReads() { open(); }

  void open() {
    auto opened = Engine::open({.directory = folder_.path() + "/data", .on_damage = [](const auto&...) {}});
    ASSERT_TRUE(opened) << opened.error().message;
    engine_ = std::move(*opened);
  }
  JobId add(std::string body) {
    std::vector<Job> jobs{Job{.kind = "k", .queue = "q", .body = std::move(body), .headers = {{"name", "value"}}}};
    auto answers = wait<Answers>([&](auto done) { engine_->enqueue(std::move(jobs), std::move(done)); });
    return answers.value().front().value().id;
  }
  Result<JobInfo> find(const JobId& id) {
    return wait<JobInfo>([&](auto done) { engine_->find(id, std::move(done)); });
  }
  JobPage list(const JobFilter& filter) {
    return wait<JobPage>([&](auto done) { engine_->list(filter, "", 100, std::move(done)); }).value();
  }
  std::string journal_file() const {
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder_.path())) {
      if (each.is_regular_file() && each.file_size() > 10 * kLarge) return each.path();
    }
    return "";
  }

  static constexpr std::size_t kLarge = 2 * DeferredBodies::kLeastBytes;

  const support::TemporaryDirectory folder_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(LateReads, OthersAreServedWhileOneIsCompletedWithALargeJob) {
  const JobId large = add(std::string(kLarge, 'l'));
  const JobId small = add("s");  // The last batch is in memory.
  std::promise<void> others_done;
  std::promise<std::size_t> read;
  engine_->find(large, [&](const Result<JobInfo>& info) {
    others_done.get_future().wait();
    read.set_value(info.value().job.body.size());
  });
  EXPECT_EQ(find(small).value().job.body, "s");
  add("t");
  others_done.set_value();
  EXPECT_EQ(read.get_future().get(), kLarge);
}

TEST_F(LateReads, LargeJobsAreShownLikeSmallOnesAloneAndInLists) {
  std::vector<std::pair<JobId, std::string>> sent;
  for (int i = 0; i < 6; ++i) {
    std::string body(i % 2 == 0 ? kLarge + static_cast<std::size_t>(i) : 10, static_cast<char>('a' + i));
    const JobId id = add(body);
    sent.emplace_back(id, std::move(body));
  }
  add("last");
  for (const auto& [id, body] : sent) {
    const JobInfo info = find(id).value();
    EXPECT_EQ(info.job.id, id);
    EXPECT_EQ(info.job.queue, "q");
    EXPECT_EQ(info.job.headers, (std::vector<std::pair<std::string, std::string>>{{"name", "value"}}));
    EXPECT_TRUE(info.job.body == body) << id.to_string();
  }
  const JobPage with = list({});
  const JobPage without = list({.bodies = false});
  ASSERT_EQ(with.jobs.size(), 7u);
  ASSERT_EQ(without.jobs.size(), 7u);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(with.jobs[i].job.id, sent[i].first);
    EXPECT_TRUE(with.jobs[i].job.body == sent[i].second) << i;
    EXPECT_EQ(without.jobs[i].job.id, sent[i].first);
    EXPECT_EQ(without.jobs[i].job.kind, "k");
    EXPECT_EQ(without.jobs[i].job.body, "");
  }
}

TEST_F(LateReads, AFailedJobShowsItsHistoryBesideItsLargeBody) {
  const JobId id = add(std::string(kLarge, 'x'));
  std::promise<Lease> leased;
  auto subscription = engine_->subscribe({.queues = {{.name = "q"}}, .credit = 1}, [&](std::vector<Lease> leases) {
    leased.set_value(std::move(leases.front()));
  });
  const Lease lease = leased.get_future().get();
  (*subscription)->set_credit(0);
  std::vector<Settlement> settlements;
  settlements.push_back({.lease = {lease.job.id, lease.token}, .outcome = Dead{.error = "why"}});
  ASSERT_TRUE(wait<std::vector<Status>>([&](auto done) { engine_->settle(std::move(settlements), std::move(done)); }));
  add("last");
  const JobInfo info = find(id).value();
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.job.body.size(), kLarge);
  ASSERT_EQ(info.history.size(), 1u);
  EXPECT_EQ(info.history.front().text, "why");
}

TEST_F(LateReads, AJobThatCannotBeReadIsToldAsOneThatIsReadAtOnce) {
  const std::string marked = std::string(kLarge, 'd');
  const JobId damaged = add(marked);
  const JobId whole = add(std::string(10 * kLarge, 'w'));
  add("last");
  const std::string path = journal_file();
  ASSERT_NE(path, "");
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    const std::size_t at = bytes.find(marked.substr(0, 1000));
    ASSERT_NE(at, std::string::npos);
    file.seekp(static_cast<std::streamoff>(at + 5000));
    file << "#";
  }
  const auto info = find(damaged);
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code, ErrorCode::kDamaged);
  EXPECT_NE(info.error().message.find("checksum"), std::string::npos) << info.error().message;
  EXPECT_EQ(find(whole).value().job.body.size(), 10 * kLarge);
  EXPECT_EQ(list({}).jobs.size(), 3u);
}

}  // namespace
}  // namespace bide::engine
