// The server against clients that behave well, badly, and not at all.

#include "brokers/shared/shared_server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <atomic>
#include <cstring>
#include <future>

#include <gtest/gtest.h>

#include "brokers/shared/shared_client.h"
#include "brokers/shared/shared_test_bench.h"
#include "support/seeded_random.h"
#include "support/temporary_directory.h"

namespace bide::brokers::shared {
namespace {

// A connection without manners. Blocking, so that a test may wait for what the server does.
class Stranger {
 public:
  explicit Stranger(const std::string& directory) : descriptor_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory + "/" + kSocketName;
    std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
    if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect to " + path);
    }
  }
  ~Stranger() { ::close(descriptor_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // False: the server has hung up.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Everything until the server hangs up.
  std::string hear_to_the_end() {
    std::string all;
    char some[4096];
    for (ssize_t got = 0; (got = ::recv(descriptor_, some, sizeof some, 0)) > 0;) {
      all.append(some, static_cast<std::size_t>(got));
    }
    return all;
  }
  std::string hear(std::size_t size) {
    std::string all(size, '\0');
    if (::recv(descriptor_, all.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) return {};
    return all;
  }
  void end_of_sending() { ::shutdown(descriptor_, SHUT_WR); }

 private:
  int descriptor_;
};

std::string hello(std::uint32_t version = kProtocolVersion) {
  return make_frame(FrameType::kHello, 0, [&](Encoder& out) {
    out.string(kMagic);
    out.u32(version);
  });
}

class SharedServerTest : public testing::Test {
 protected:
  SharedServerTest() { start({}); }
  ~SharedServerTest() override { server_.reset(); }

  void start(SharedServerLimits limits) {
    server_.reset();
    engine_.reset();
    auto engine = engine::Engine::open(options_for(directory()));
    if (!engine) throw std::runtime_error(engine.error().message);
    engine_ = std::move(*engine);
    auto server = SharedServer::open(directory(), *engine_, limits);
    if (!server) throw std::runtime_error(server.error().message);
    server_ = std::move(*server);
  }

  const std::string& directory() const { return directory_.path(); }

  std::shared_ptr<SharedClient> client() {
    FindOwner nobody = []() -> Result<std::variant<OwnerConnection, LocalOwner>> {
      return Error{ErrorCode::kBusy, "nobody"};
    };
    return client(nobody, Milliseconds(0));
  }
  std::shared_ptr<SharedClient> client(FindOwner find_owner, Milliseconds patience) {
    auto connected = connect_to_owner(directory(), Milliseconds(5000));
    if (!connected) throw std::runtime_error(connected.error().message);
    return SharedClient::start(std::move(*connected), std::move(find_owner), patience);
  }

  // Whatever else happened, the server serves.
  void expect_alive() {
    const auto friendly = client();
    const JobId id = enqueue_one(*friendly);
    EXPECT_TRUE(find(*engine_, id));
    friendly->close();
  }

  support::TemporaryDirectory directory_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<SharedServer> server_;
};

TEST_F(SharedServerTest, HangsUpOnGarbage) {
  support::SeededRandom random(7);
  for (int round = 0; round < 50; ++round) {
    Stranger stranger(directory());
    std::string garbage;
    for (int i = 0; i < 1 + round * 20; ++i) garbage += static_cast<char>(random.next());
    stranger.send(garbage);
    stranger.end_of_sending();
    stranger.hear_to_the_end();
  }
  expect_alive();
}

TEST_F(SharedServerTest, HangsUpOnFramesWithGarbageInThem) {
  support::SeededRandom random(8);
  for (int type = 0; type < 40; ++type) {
    for (int round = 0; round < 5; ++round) {
      Stranger stranger(directory());
      stranger.send(hello());
      stranger.send(make_frame(static_cast<FrameType>(type), 1, [&](Encoder& out) {
        for (int i = 0; i < round * round * 10; ++i) out.u8(static_cast<std::uint8_t>(random.next()));
      }));
      stranger.end_of_sending();
      stranger.hear_to_the_end();
    }
  }
  expect_alive();
}

TEST_F(SharedServerTest, HangsUpOnAFrameThatIsTooLong) {
  Stranger stranger(directory());
  std::string bytes = hello();
  Encoder(bytes).u32(static_cast<std::uint32_t>(kFrameBytes + 1));
  stranger.send(bytes);
  stranger.hear_to_the_end();
  expect_alive();
}

TEST_F(SharedServerTest, TellsAnotherVersionItsOwnAndHangsUp) {
  Stranger stranger(directory());
  stranger.send(hello(kProtocolVersion + 1));
  FrameReader reader;
  const std::string bytes = stranger.hear_to_the_end();
  std::memcpy(reader.room(bytes.size()), bytes.data(), bytes.size());
  reader.filled(bytes.size());
  Frame frame;
  ASSERT_EQ(reader.next(frame), FrameReader::Next::kFrame);
  Decoder in(frame.payload);
  EXPECT_EQ(in.string(), kMagic);
  EXPECT_EQ(in.u32(), kProtocolVersion);
}

TEST_F(SharedServerTest, ANewerOwnerIsSaidToBeNewer) {
  server_.reset();
  auto listener = platform::LocalListener::listen(directory(), kSocketName);
  ASSERT_TRUE(listener);
  std::thread owner([&] {
    platform::Readiness waited{listener->descriptor(), true, false};
    platform::wait_ready({&waited, 1}, std::nullopt);
    auto socket = listener->accept();
    const std::string answer = hello(kProtocolVersion + 1);
    const std::string_view piece = answer;
    (void)(*socket)->send({&piece, 1});
  });
  const auto connected = connect_to_owner(directory(), Milliseconds(5000));
  owner.join();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, ErrorCode::kNewerVersion);
}

TEST_F(SharedServerTest, AClientThatSaysNothingIsCutOff) {
  start({.handshake = Milliseconds(1)});
  Stranger stranger(directory());
  EXPECT_EQ(stranger.hear_to_the_end(), "");
  start({});
  expect_alive();
}

TEST_F(SharedServerTest, AClientThatDoesNotReadIsCutOffAndItsLeasesAreNotCharged) {
  start({.backlog_bytes = 1000, .silence = Milliseconds(1)});
  Job job = job_for();
  job.body = std::string(1 << 20, 'x');
  const JobId id = enqueue_one(*engine_, job);
  Stranger stranger(directory());
  stranger.send(hello());
  stranger.send(
      make_frame(FrameType::kSubscribe, 1, [](Encoder& out) { put(out, std::uint64_t{1}, SubscribeOptions{}); }));
  // Hung up on is noticed by sending, whenever that is: it does not read.
  while (stranger.send(make_frame(FrameType::kSetCredit, 0, [](Encoder& out) { put(out, std::uint64_t{1}, 64); }))) {
  }
  // It was not sent whole: somebody else has it at once.
  Basket ours;
  auto subscription = std::move(*engine_->subscribe({}, ours.sink()));
  const Lease lease = ours.take_one();
  EXPECT_EQ(lease.job.id, id);
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_EQ(lease.counts, AttemptCounts{});
}

TEST_F(SharedServerTest, LeasesThatWereNotSentToAClientThatCrashedAreNotCharged) {
  {
    Stranger crashing(directory());
    crashing.send(hello() + make_frame(FrameType::kSubscribe, 1, [](Encoder& out) {
                    put(out, std::uint64_t{1}, SubscribeOptions{.credit = 8});
                  }));
    Job job = job_for();
    job.body = std::string(8 << 20, 'x');  // More than a socket takes.
    for (int i = 0; i < 4; ++i) enqueue_one(*engine_, job);
    while (queue_of(*engine_).running == 0) {
    }
  }
  Basket ours;
  auto subscription = std::move(*engine_->subscribe({}, ours.sink()));
  for (std::size_t seen = 0; seen < 4;) {
    for (const Lease& lease : ours.take(1)) {
      EXPECT_EQ(lease.attempt, 1u);
      EXPECT_EQ(lease.counts, AttemptCounts{});
      ++seen;
    }
  }
}

TEST_F(SharedServerTest, DeliveriesThatAreMarkedWhileAnOwnerIsSoughtAreToldTheNext) {
  enqueue_one(*engine_);
  std::promise<void> seeking, marked;
  const FindOwner find_owner = [&]() -> Result<std::variant<OwnerConnection, LocalOwner>> {
    seeking.set_value();
    marked.get_future().wait();
    auto connected = connect_to_owner(directory(), Milliseconds(5000));
    if (!connected) return connected.error();
    return std::variant<OwnerConnection, LocalOwner>(std::move(*connected));
  };
  const auto handing_on = client(find_owner, Milliseconds(30'000));
  Basket basket;
  auto subscription =
      std::move(*handing_on->subscribe({.lease = Milliseconds(1000), .outlives_process = true}, basket.sink()));
  const Lease lease = basket.take_one();
  server_.reset();
  engine_.reset();
  seeking.get_future().wait();
  handing_on->mark_delivered({{lease.job.id, lease.token}});
  start({});
  marked.set_value();
  (void)queue_of(*handing_on);  // In order: this comes after what was handed on.
  // Its time runs out, and it is charged, since it reached somebody.
  Basket ours;
  auto our_subscription = std::move(*engine_->subscribe({}, ours.sink()));
  EXPECT_EQ(ours.take_one().counts, (AttemptCounts{.lost = 1}));
  handing_on->close();
}

TEST_F(SharedServerTest, AClientWithTooManyAnswersUnreadIsNotHeardUntilItReads) {
  start({.calls = 10, .backlog_bytes = 1000});
  Stranger stranger(directory());
  std::string calls = hello();
  for (std::uint64_t i = 1; i <= 2000; ++i) calls += make_frame(FrameType::kQueues, i);
  std::thread sender([&] { EXPECT_TRUE(stranger.send(calls)); });
  FrameReader reader;
  std::uint64_t answers = 0;
  while (answers < 2000) {
    const std::string bytes = stranger.hear(1);
    ASSERT_FALSE(bytes.empty());
    *reader.room(1) = bytes[0];
    reader.filled(1);
    Frame frame;
    if (reader.next(frame) == FrameReader::Next::kFrame && frame.type == FrameType::kAnswer) {
      EXPECT_EQ(frame.number, ++answers);
    }
  }
  sender.join();
}

TEST_F(SharedServerTest, LeasesOfAClientThatVanishesAreChargedAsCrashed) {
  const JobId id = enqueue_one(*engine_);
  const auto gone = client();
  Basket basket;
  auto subscription = std::move(*gone->subscribe({}, basket.sink()));
  basket.take_one();
  Basket ours;
  auto our_subscription = std::move(*engine_->subscribe({}, ours.sink()));
  gone->abort_connection();
  const Lease lease = ours.take_one();
  EXPECT_EQ(lease.job.id, id);
  EXPECT_EQ(lease.attempt, 2u);
  EXPECT_EQ(lease.counts, (AttemptCounts{.crashed = 1}));
}

TEST_F(SharedServerTest, ASettleOfAClientThatWasTakenForDeadIsRefused) {
  enqueue_one(*engine_);
  const auto gone = client();
  Basket basket;
  auto subscription = std::move(*gone->subscribe({}, basket.sink()));
  const Lease before = basket.take_one();
  Basket ours;
  auto our_subscription = std::move(*engine_->subscribe({}, ours.sink()));
  gone->abort_connection();
  const Lease after = ours.take_one();
  const auto other = client();
  EXPECT_EQ(settle(*other, before).error().code, ErrorCode::kLeaseLost);
  EXPECT_TRUE(settle(*other, after));
  other->close();
}

TEST_F(SharedServerTest, EndingASubscriptionInItsOwnSinkReturnsWhatIsStillUnderWay) {
  const auto friendly = client();
  std::mutex mutex;
  std::condition_variable arrived;
  std::unique_ptr<Subscription> subscription;
  std::size_t seen = 0;
  {
    std::lock_guard lock(mutex);
    subscription = std::move(*friendly->subscribe({.credit = 1}, [&](const std::vector<Lease>& leases) {
      std::lock_guard inside(mutex);
      seen += leases.size();
      subscription->set_credit(1000);
      subscription.reset();
      arrived.notify_all();
    }));
  }
  for (int i = 0; i < 50; ++i) enqueue_one(*engine_);
  {
    std::unique_lock lock(mutex);
    arrived.wait(lock, [&] { return seen > 0; });
  }
  // All others come to somebody else, none of them charged.
  Basket ours;
  auto our_subscription = std::move(*engine_->subscribe({.credit = 100}, ours.sink()));
  std::size_t others = 0;
  while (others < 49) {
    for (const Lease& lease : ours.take(1)) {
      EXPECT_EQ(lease.attempt, 1u);
      ++others;
    }
  }
  friendly->close();
}

TEST_F(SharedServerTest, LeasesUnderWayToAClientThatLeavesGoBackUncharged) {
  enqueue_one(*engine_);
  // How far the leases have come when it leaves is up to chance, so it is tried a few times.
  for (int round = 0; round < 40; ++round) {
    Stranger leaving(directory());
    leaving.send(hello() + make_frame(FrameType::kSubscribe, 1, [](Encoder& out) {
                   put(out, std::uint64_t{1}, SubscribeOptions{.credit = 1000});
                 }));
    while (queue_of(*engine_).workers == 0) {
    }
    engine_->enqueue(std::vector<Job>(20, job_for()), [](const Result<std::vector<Result<Enqueued>>>&) {});
    leaving.send(make_frame(FrameType::kGoodbye, 0));
    leaving.hear_to_the_end();
  }
  // Whatever was given out is back: nothing waits for the end of a lease.
  Basket ours;
  auto subscription = std::move(*engine_->subscribe({.credit = 10'000}, ours.sink()));
  std::size_t seen = 0;
  while (seen < 801) {
    for (const Lease& lease : ours.take(1)) {
      EXPECT_EQ(lease.attempt, 1u);
      ++seen;
    }
  }
}

TEST_F(SharedServerTest, ASubscriptionThatEndedBeforeItsFirstOwnerAnsweredIsNotMadeWithTheNext) {
  std::shared_ptr<SharedClient> seeking;
  std::atomic<bool> subscribed = false;
  // Called on the client's own thread, which does not wait for the answer.
  const FindOwner find_owner = [&]() -> Result<std::variant<OwnerConnection, LocalOwner>> {
    auto subscription = seeking->subscribe({}, [](const std::vector<Lease>&) {});
    subscribed = subscription.has_value();
    subscription = Error{ErrorCode::kNotFound, "ended"};
    auto connected = connect_to_owner(directory(), Milliseconds(1000));
    if (!connected) return connected.error();
    return std::variant<OwnerConnection, LocalOwner>(std::move(*connected));
  };
  seeking = client(find_owner, Milliseconds(30'000));
  start({});
  (void)queue_of(*seeking);  // In order: this comes after what was handed on.
  EXPECT_TRUE(subscribed);
  enqueue_one(*seeking);
  EXPECT_EQ(queue_of(*engine_).workers, 0u);
  seeking->close();
}

TEST_F(SharedServerTest, WatchesThatWereGivenUpLeaveTheirPlaceToOthers) {
  const auto friendly = client();
  const auto answers = enqueue(*friendly, {job_for()});
  ASSERT_TRUE(answers && (*answers)[0]);
  const JobId id = (*answers)[0]->id;
  const std::size_t places = SharedServerLimits().watches;
  std::atomic<int> called = 0;
  const auto count = [&called](const Result<JobInfo>&) { ++called; };
  for (std::size_t i = 0; i < places + 100; ++i) friendly->watch(id, count)();
  // A call that was answered: the server has heard all of that.
  ASSERT_TRUE(wait<JobInfo>([&](auto done) { friendly->find(id, std::move(done)); }));
  EXPECT_EQ(called, 0) << "refused, though all before were given up";
  const GiveUp last = friendly->watch(id, [](const Result<JobInfo>&) {});
  last();
  friendly->close();
}

TEST_F(SharedServerTest, ABatchThatIsTooLongForOneFrameGoesInSeveral) {
  const auto friendly = client();
  std::vector<Job> jobs(6, job_for());
  for (Job& job : jobs) job.body = std::string(Limits::kBodyBytes, 'b');
  jobs[3].body += "x";  // One byte too many.
  const auto answers = enqueue(*friendly, jobs);
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ((*answers)[i].has_value(), i != 3) << i << ((*answers)[i] ? "" : (*answers)[i].error().message);
  }
  // A page of them is too long as well and comes as several.
  std::size_t listed = 0;
  std::string cursor;
  do {
    const auto page = wait<JobPage>([&](auto done) { friendly->list({}, cursor, 100, std::move(done)); });
    ASSERT_TRUE(page) << page.error().message;
    listed += page->jobs.size();
    cursor = page->next;
  } while (!cursor.empty());
  EXPECT_EQ(listed, 5u);
  friendly->close();
}

TEST_F(SharedServerTest, AJobThatIsTooLongForAnyFrameIsRefusedAloneWithTheUsualWords) {
  const auto friendly = client();
  std::vector<Job> jobs(2, job_for());
  jobs[0].body = std::string(kFrameBytes, 'b');
  const auto answers = enqueue(*friendly, jobs);
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 2u);
  EXPECT_EQ((*answers)[0].error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE((*answers)[0].error().message.find("body"), std::string::npos);
  EXPECT_TRUE((*answers)[1]);
  friendly->close();
}

TEST_F(SharedServerTest, WhatTheEngineRefusesIsRefusedToAClientToo) {
  const auto friendly = client();
  EXPECT_EQ(friendly->subscribe({.queues = {}}, [](const std::vector<Lease>&) {}).error().code,
            ErrorCode::kInvalidArgument);
  Job nameless;
  EXPECT_EQ(enqueue(*friendly, {nameless})->at(0).error().code, ErrorCode::kInvalidArgument);
  friendly->close();
}

TEST_F(SharedServerTest, AClosedClientAnswersEveryCall) {
  const auto friendly = client();
  friendly->close();
  EXPECT_EQ(enqueue(*friendly, {job_for()}).error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(friendly->subscribe({}, [](const std::vector<Lease>&) {}));
}

TEST_F(SharedServerTest, ClientsBeyondTheLimitWaitForTheirTurn) {
  start({.clients = 1});
  auto first = client();
  EXPECT_EQ(connect_to_owner(directory(), Milliseconds(0)).error().code, ErrorCode::kUnavailable);
  first->close();
  expect_alive();
}

}  // namespace
}  // namespace bide::brokers::shared
