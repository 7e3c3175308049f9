// Several real processes on one data directory. The others run shared_store_test_child.cc.

#include "brokers/shared/shared_store.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <deque>
#include <set>

#include <gtest/gtest.h>

#include "brokers/shared/shared_test_bench.h"
#include "platform/disk.h"
#include "support/temporary_directory.h"

namespace bide::brokers::shared {
namespace {

using support::TemporaryDirectory;

class Child {
 public:
  explicit Child(const std::string& directory) {
    int to[2];
    int from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to[0], 0);
      ::dup2(from[1], 1);
      ::execl(BIDE_CHILD, BIDE_CHILD, directory.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  ~Child() {
    if (pid_ > 0) kill();
    ::close(to_);
    ::close(from_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void tell(const std::string& line) {
    const std::string text = line + "\n";
    if (::write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) throw std::runtime_error("deaf");
  }
  std::string hear() {
    std::string line;
    for (char c = 0;;) {
      const ssize_t got = ::read(from_, &c, 1);
      if (got <= 0) throw std::runtime_error("the child ended; it had said: " + line);
      if (c == '\n') return line;
      line += c;
    }
  }
  std::string call(const std::string& line) {
    tell(line);
    return hear();
  }
  // Dead when it returns.
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

std::unique_ptr<SharedStore> open(const TemporaryDirectory& directory) {
  auto opened = SharedStore::open(options_for(directory.path()));
  if (!opened) throw std::runtime_error(opened.error().message);
  return std::move(*opened);
}

std::unique_ptr<Subscription> subscribe(SharedStore& store, Basket& basket, int credit = 64) {
  return std::move(store.subscribe({.credit = credit, .worker = "parent"}, basket.sink()).value());
}

JobId id_number(std::uint32_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{1, 2, 3, 4, 5, 6, 0x70, 7, 0x80, 8, 9, 10};
  for (unsigned i = 0; i < 4; ++i) bytes[12 + i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
  return JobId(bytes);
}

// With an id of its own a job can be enqueued until that is confirmed.
void enqueue_surely(SharedStore& store, const Job& job) {
  for (;;) {
    const auto answer = enqueue(store, {job});
    if (answer && answer->at(0)) return;
    const Error& error = answer ? answer->at(0).error() : answer.error();
    if (error.code != ErrorCode::kUnavailable && error.code != ErrorCode::kUnconfirmed) {
      throw std::runtime_error(error.message);
    }
  }
}

TEST(SharedStore, TheFirstOwnsAndTheOthersAreItsClients) {
  const TemporaryDirectory directory;
  auto first = open(directory);
  auto second = open(directory);
  EXPECT_TRUE(first->is_owner());
  EXPECT_FALSE(second->is_owner());
  const JobId id = enqueue_one(*second);
  EXPECT_TRUE(find(*first, id));
  EXPECT_TRUE(find(*second, id));
}

TEST(SharedStore, WorkIsSharedBetweenProcesses) {
  const TemporaryDirectory directory;
  auto store = open(directory);
  Child child(directory.path());
  EXPECT_EQ(child.call("open"), "client");
  EXPECT_EQ(child.call("enqueue 100"), "enqueued 100");
  EXPECT_EQ(queue_of(*store).ready, 100u);
  EXPECT_EQ(child.call("work 100"), "worked 100");
  EXPECT_EQ(queue_of(*store).done, 100u);
  EXPECT_EQ(child.call("close"), "closed");
}

TEST(SharedStore, ProcessesThatStartAtTheSameMomentShareAFreshDirectory) {
  for (int round = 0; round < 5; ++round) {
    const TemporaryDirectory directory;
    std::deque<Child> children;
    for (int i = 0; i < 4; ++i) children.emplace_back(directory.path() + "/data");
    for (Child& child : children) child.tell("open");
    int owners = 0;
    for (Child& child : children) {
      const std::string role = child.hear();
      EXPECT_TRUE(role == "owner" || role == "client") << role;
      owners += role == "owner" ? 1 : 0;
    }
    EXPECT_EQ(owners, 1);
    for (Child& child : children) child.tell("enqueue 25");
    for (Child& child : children) EXPECT_EQ(child.hear(), "enqueued 25");
    auto store = SharedStore::open(options_for(directory.path() + "/data"));
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(queue_of(**store).ready, 100u);
  }
}

TEST(SharedStore, AThousandCallsAreUnderWayAtOnce) {
  const TemporaryDirectory directory;
  Child owner(directory.path());
  ASSERT_EQ(owner.call("open"), "owner");
  std::atomic<int> good = 0;
  auto store = open(directory);
  for (int i = 0; i < 1000; ++i) {
    store->enqueue({job_for()}, [&](const Result<std::vector<Result<Enqueued>>>& answer) {
      if (answer && answer->size() == 1 && answer->at(0)) ++good;
    });
  }
  EXPECT_EQ(queue_of(*store).ready, 1000u);  // In order: this comes after them all.
  EXPECT_EQ(good, 1000);
}

TEST(SharedStore, WhenTheOwnerIsKilledAClientTakesOverAndNothingIsLost) {
  const TemporaryDirectory directory;
  for (std::uint32_t round = 0; round < 5; ++round) {
    Child owner(directory.path());
    ASSERT_EQ(owner.call("open"), "owner");
    std::set<JobId> wanted;
    std::mutex mutex;
    std::set<JobId> confirmed;
    std::set<JobId> doubtful;
    auto store = open(directory);
    ASSERT_FALSE(store->is_owner());
    for (std::uint32_t i = 0; i < 300; ++i) {
      if (i == 150) owner.kill();
      Job job = job_for("round" + std::to_string(round));
      job.id = id_number(round * 1000 + i);
      wanted.insert(job.id);
      store->enqueue({job}, [&, id = job.id](const Result<std::vector<Result<Enqueued>>>& answer) {
        std::lock_guard lock(mutex);
        if (answer && answer->at(0)) {
          confirmed.insert(id);
        } else {
          EXPECT_TRUE(answer || answer.error().code == ErrorCode::kUnavailable ||
                      answer.error().code == ErrorCode::kUnconfirmed);
          doubtful.insert(id);
        }
      });
    }
    (void)queue_of(*store);
    EXPECT_TRUE(store->is_owner());
    for (const JobId& id : confirmed) EXPECT_TRUE(find(*store, id)) << id.to_string();
    for (const JobId& id : doubtful) {
      Job job = job_for("round" + std::to_string(round));
      job.id = id;
      enqueue_surely(*store, job);
    }
    EXPECT_EQ(confirmed.size() + doubtful.size(), wanted.size());
    EXPECT_EQ(queue_of(*store, "round" + std::to_string(round)).ready, wanted.size());
    EXPECT_TRUE(wait<AuditReport>([&](auto done) { store->audit(std::move(done)); })->ok());
  }
}

TEST(SharedStore, AnOwnerThatEndsInOrderCostsItsClientsNothing) {
  const TemporaryDirectory directory;
  Child owner(directory.path());
  ASSERT_EQ(owner.call("open"), "owner");
  std::atomic<int> good = 0;
  std::atomic<int> bad = 0;
  auto store = open(directory);
  for (int i = 0; i < 1000; ++i) {
    if (i == 300) owner.tell("close");
    store->enqueue({job_for()}, [&](const Result<std::vector<Result<Enqueued>>>& answer) {
      ++(answer && answer->at(0) ? good : bad);
    });
  }
  EXPECT_EQ(owner.hear(), "closed");
  // The last of it may come from this process itself by now.
  while (queue_of(*store).ready < 1000 && bad == 0) {
  }
  EXPECT_EQ(bad, 0);
  EXPECT_TRUE(store->is_owner());
  EXPECT_EQ(queue_of(*store).ready, 1000u);
}

TEST(SharedStore, ALeaseOfAKilledClientIsGivenOutAgainAtOnceAndCountsAsACrash) {
  const TemporaryDirectory directory;
  auto store = open(directory);
  for (int i = 0; i < 3; ++i) enqueue_one(*store);
  Child child(directory.path());
  ASSERT_EQ(child.call("open"), "client");
  ASSERT_EQ(child.call("take 3"), "taken 3");
  Basket basket;
  auto subscription = subscribe(*store, basket);
  child.kill();
  for (const Lease& lease : basket.take(3)) {
    EXPECT_EQ(lease.attempt, 2u);
    EXPECT_EQ(lease.counts, (AttemptCounts{.crashed = 1}));
    EXPECT_TRUE(settle(*store, lease));
  }
}

TEST(SharedStore, AJobThatKillsThreeClientsIsDeadAsPoison) {
  const TemporaryDirectory directory;
  std::atomic<bool> finished = false;
  auto store = open(directory);
  const JobId id = enqueue_one(*store);
  store->watch(id, [&](const Result<JobInfo>&) { finished = true; });
  for (int crash = 0; crash < 3; ++crash) {
    Child child(directory.path());
    ASSERT_EQ(child.call("open"), "client");
    ASSERT_EQ(child.call("take 1"), "taken 1");
    child.kill();
  }
  const auto info = wait<JobInfo>([&](auto done) { store->watch(id, std::move(done)); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->state, JobState::kDead);
  EXPECT_EQ(info->dead_reason, DeadReason::kPoison);
  EXPECT_EQ(info->counts, (AttemptCounts{.crashed = 3}));
  EXPECT_TRUE(finished);
}

TEST(SharedStore, LeasesOfAClientThatEndsInOrderAreReturnedUncharged) {
  const TemporaryDirectory directory;
  auto store = open(directory);
  enqueue_one(*store);
  Child child(directory.path());
  ASSERT_EQ(child.call("open"), "client");
  ASSERT_EQ(child.call("take 1"), "taken 1");
  ASSERT_EQ(child.call("close"), "closed");
  Basket basket;
  auto subscription = subscribe(*store, basket);
  const Lease lease = basket.take_one();
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_EQ(lease.counts, AttemptCounts{});
}

TEST(SharedStore, ALeaseAndItsSubscriptionSurviveTheDeathOfTheOwner) {
  const TemporaryDirectory directory;
  Child owner(directory.path());
  ASSERT_EQ(owner.call("open"), "owner");
  auto store = open(directory);
  const JobId first = enqueue_one(*store);
  Basket basket;
  auto subscription = subscribe(*store, basket, 1);
  const Lease lease = basket.take_one();
  EXPECT_EQ(lease.job.id, first);
  owner.kill();
  Job second = job_for();
  second.id = id_number(2);
  enqueue_surely(*store, second);
  EXPECT_TRUE(store->is_owner());
  EXPECT_FALSE(extend(*store, lease).lost);
  EXPECT_EQ(basket.count(), 0u) << "the lease from before counts against the credit";
  EXPECT_TRUE(settle(*store, lease));
  const Lease next = basket.take_one();
  EXPECT_EQ(next.job.id, second.id);
  EXPECT_EQ(next.attempt, 1u);
  EXPECT_TRUE(settle(*store, next));
  EXPECT_EQ(find(*store, first)->state, JobState::kDone);
}

TEST(SharedStore, LeasesThatEndedWithoutAWordDoNotCountAgainstTheCreditOfTheNextOwner) {
  const TemporaryDirectory directory;
  Child owner(directory.path());
  ASSERT_EQ(owner.call("open"), "owner");
  auto store = open(directory);
  Basket basket;
  auto subscription = std::move(store->subscribe({.credit = 1, .lease = Milliseconds(100)}, basket.sink()).value());
  Job once = job_for();
  once.retry = RetryPolicy::none();
  const JobId first = enqueue_one(*store, once);
  (void)basket.take_one();
  // Nobody speaks of it again, and its time runs out.
  ASSERT_EQ(wait<JobInfo>([&](auto done) { store->watch(first, std::move(done)); })->state, JobState::kDead);
  owner.kill();
  Job second = job_for();
  second.id = id_number(2);
  enqueue_surely(*store, second);
  EXPECT_EQ(basket.take_one().job.id, second.id);
}

TEST(SharedStore, ALeaseOfAnEarlierOwnerGivesItsCreditBackWhenItsTimeIsOver) {
  const TemporaryDirectory directory;
  Child owner(directory.path());
  ASSERT_EQ(owner.call("open"), "owner");
  auto store = open(directory);
  Basket basket;
  auto subscription = std::move(store->subscribe({.credit = 1, .lease = Milliseconds(1000)}, basket.sink()).value());
  Job once = job_for();
  once.retry = RetryPolicy::none();
  enqueue_one(*store, once);
  (void)basket.take_one();
  owner.kill();
  Job second = job_for();
  second.id = id_number(2);
  enqueue_surely(*store, second);
  EXPECT_TRUE(store->is_owner());
  EXPECT_EQ(basket.take_one().job.id, second.id) << "though nobody has spoken of the first again";
}

TEST(SharedStore, TheNextOwnerNoticesTheDeathOfAClientItInherited) {
  const TemporaryDirectory directory;
  Child owner(directory.path());
  ASSERT_EQ(owner.call("open"), "owner");
  Child other(directory.path());
  ASSERT_EQ(other.call("open"), "client");
  ASSERT_EQ(other.call("enqueue 1"), "enqueued 1");
  ASSERT_EQ(other.call("take 1"), "taken 1");
  owner.kill();
  // Whichever of the two takes over, the lease is still held.
  auto store = open(directory);
  while (other.call("enqueue 1 other") != "enqueued 1") {
  }
  EXPECT_EQ(queue_of(*store).running, 1u);
  if (other.call("role") == "owner") {
    other.kill();
    return;  // Its lease was one of another process and runs out in time.
  }
  Basket basket;
  auto subscription = subscribe(*store, basket);
  other.kill();
  EXPECT_EQ(basket.take_one().counts, (AttemptCounts{.crashed = 1}));
}

TEST(SharedStore, AWatchSurvivesTheDeathOfTheOwner) {
  const TemporaryDirectory directory;
  Child owner(directory.path());
  ASSERT_EQ(owner.call("open"), "owner");
  auto store = open(directory);
  const JobId id = enqueue_one(*store);
  Basket basket;
  const auto info = wait<JobInfo>([&](auto done) {
    store->watch(id, std::move(done));
    (void)queue_of(*store);  // The owner has heard of it.
    owner.kill();
    auto subscription = subscribe(*store, basket);
    EXPECT_TRUE(settle(*store, basket.take_one()));
  });
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->state, JobState::kDone);
}

TEST(SharedStore, AnOwnerThatDoesNotListenIsNamed) {
  const TemporaryDirectory directory;
  const auto lock = platform::lock_directory(directory.path());
  ASSERT_TRUE(lock);
  const auto opened = SharedStore::open(options_for(directory.path()), Milliseconds(50));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kBusy);
  EXPECT_NE(opened.error().message.find(std::to_string(::getpid())), std::string::npos) << opened.error().message;
}

TEST(SharedStore, CallsOfAStoreWithoutAnOwnerCompleteInTheEnd) {
  const TemporaryDirectory directory;
  auto owner = open(directory);
  auto opened = SharedStore::open(options_for(directory.path()), Milliseconds(100));
  ASSERT_TRUE(opened);
  SharedStore& other = **opened;
  enqueue_one(other);
  owner.reset();
  // As soon as the owner is gone somebody else has the directory, and never says a word. If the client was faster, it
  // is the owner now and everything works.
  const auto lock = platform::lock_directory(directory.path());
  const auto answer = enqueue(other, {job_for()});
  if (lock) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  } else {
    // Its patience may have ended before it was ready.
    Job job = job_for();
    job.id = id_number(1);
    enqueue_surely(other, job);
    EXPECT_TRUE(other.is_owner());
  }
}

}  // namespace
}  // namespace bide::brokers::shared
