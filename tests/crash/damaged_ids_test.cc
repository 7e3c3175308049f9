// Files with the ids of done jobs that are damaged: `store check` names the place, `store repair` keeps the others.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bide/wait.h"
#include "engine/check/check_store.h"
#include "engine/check/repair_store.h"
#include "engine/engine.h"
#include "platform/disk.h"
#include "support/temporary_directory.h"

namespace bide::engine {
namespace {

constexpr std::uint64_t kIds = 3 * 4096;
constexpr std::uint64_t kSecondBlock = 512;

JobId make_id(std::uint64_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t i = 0; i < 8; ++i) bytes[15 - i] = static_cast<std::uint8_t>((number + 1) >> (8 * i));
  return JobId(bytes);
}

class DamagedIds : public testing::Test {
 protected:
  std::unique_ptr<Engine> open() {
    EngineOptions options;
    options.directory = directory_;
    options.done_limit = 10;
    options.snapshot_bytes = 64 << 10;
    options.segment_bytes = 256 << 10;
    options.reserve_bytes = 64 << 10;
    options.on_damage = [this](const Damage& damage) { damage_.push_back(damage); };
    auto opened = Engine::open(std::move(options));
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  // How many of them were there.
  static std::uint64_t send(Engine& engine, std::uint64_t from, std::uint64_t to) {
    std::vector<Job> jobs;
    for (std::uint64_t i = from; i < to; ++i) jobs.push_back(Job{.id = make_id(i), .kind = "work"});
    const auto results = wait<std::vector<Result<Enqueued>>>(
        [&](auto done) { engine.enqueue(std::move(jobs), std::move(done)); });
    EXPECT_TRUE(results);
    return static_cast<std::uint64_t>(
        std::count_if(results->begin(), results->end(), [](const auto& result) { return result.value().existed; }));
  }
  void make_store(std::uint64_t from = 0) {
    auto engine = open();
    Engine& broker = *engine;
    auto subscription = broker.subscribe({.credit = 1000}, [&broker](std::vector<Lease> leases) {
      std::vector<Settlement> settlements(leases.size());
      for (std::size_t i = 0; i < leases.size(); ++i) {
        settlements[i].lease = {leases[i].job.id, leases[i].token};
        settlements[i].outcome = Done{};
      }
      broker.settle(std::move(settlements), [](const auto&) {});
    });
    ASSERT_TRUE(subscription);
    EXPECT_EQ(send(broker, from, from + kIds), 0u);
    const auto done = [&] {
      return wait<AuditReport>([&](auto told) { broker.audit(std::move(told)); }).value().done;
    };
    while (done() < from + kIds) std::this_thread::yield();
    broker.tidy_up();
    subscription->reset();
  }

  support::TemporaryDirectory folder_;
  const std::string directory_ = folder_.path() + "/store";
  std::vector<Damage> damage_;
};

TEST_F(DamagedIds, AreNamedByCheckAndGivenUpByRepairAndTheOthersStayKnown) {
  make_store();
  platform::Disk& disk = platform::real_disk();
  const auto whole = check::check_store(disk, directory_);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_FALSE(whole->damaged());
  for (const check::Finding& finding : whole->findings) {
    EXPECT_EQ(finding.file.find("ids"), std::string::npos) << finding.text;
  }

  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/ids")) {
    if (path.empty() || entry.path().string() < path) path = entry.path().string();
  }
  {
    auto file = disk.open(path, platform::OpenMode::kReadWrite);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(kSecondBlock + 100, "damage"));
  }
  const auto damaged = check::check_store(disk, directory_);
  ASSERT_TRUE(damaged);
  ASSERT_TRUE(damaged->damaged());
  EXPECT_EQ(directory_ + "/" + damaged->findings.front().file, path);
  EXPECT_EQ(damaged->findings.front().offset, kSecondBlock);
  open().reset();
  ASSERT_EQ(damage_.size(), 1u);
  EXPECT_EQ(damage_[0].file, path);
  EXPECT_EQ(damage_[0].offset, kSecondBlock);

  const auto repaired = check::repair_store(disk, directory_, 1'700'000'000'000);
  ASSERT_TRUE(repaired) << repaired.error().message;
  EXPECT_FALSE(check::check_store(disk, directory_).value().damaged());
  damage_.clear();
  auto engine = open();
  EXPECT_TRUE(damage_.empty());
  EXPECT_EQ(send(*engine, 0, kIds), kIds - 4096) << "those of one block are forgotten";
}

TEST_F(DamagedIds, OfAFileWithoutAWholeBlockAreDamageUnlessItWasNeverBegun) {
  make_store(0);
  make_store(kIds);
  platform::Disk& disk = platform::real_disk();
  const std::string first = "ids/0000000000000001.ids";
  const auto fill_first = [&](std::size_t bytes, char with) {
    auto file = disk.open(directory_ + "/" + first, platform::OpenMode::kReadWrite);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->truncate(0));
    ASSERT_TRUE((*file)->write(0, std::string(bytes, with)));
  };
  fill_first(4096, 'x');
  const auto damaged = check::check_store(disk, directory_);
  ASSERT_TRUE(damaged);
  ASSERT_TRUE(damaged->damaged());
  EXPECT_EQ(damaged->findings.front().file, first);
  EXPECT_EQ(damaged->findings.front().offset, 0u);
  open().reset();
  ASSERT_EQ(damage_.size(), 1u);
  EXPECT_EQ(damage_[0].file, directory_ + "/" + first);
  EXPECT_EQ(damage_[0].offset, 0u);

  // As a loss of power leaves one that was being begun, when those before it have been dropped.
  fill_first(512, '\0');
  EXPECT_FALSE(check::check_store(disk, directory_).value().damaged());
  damage_.clear();
  open().reset();
  EXPECT_TRUE(damage_.empty());
}

}  // namespace
}  // namespace bide::engine
