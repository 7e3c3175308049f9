// Receivers that would like to keep us: each costs one failed attempt and nothing more.

#include "callbacks/callback_bench.h"

namespace bide::server {
namespace {

class MisbehavingReceiver : public CallbackTest {
 protected:
  // The error of the only attempt.
  std::string error_of(const std::string& url, CallbackOptions chosen = options()) {
    start(std::move(chosen));
    Job job = job_to(url);
    job.retry = RetryPolicy::none();
    const JobInfo info = deliver(job);
    EXPECT_EQ(info.state, JobState::kDead);
    EXPECT_EQ(info.counts.failed, 1u);
    return info.history.back().text;
  }
  static CallbackOptions hasty() {
    CallbackOptions made = options();
    made.answer_within = 1s;
    return made;
  }
};

TEST_F(MisbehavingReceiver, ThatNeverAnswersRunsIntoTheDeadline) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.wait_until_gone(-1); });
  const std::string error = error_of(receiver.url(), hasty());
  EXPECT_NE(error.find("timed out"), std::string::npos) << error;
}

TEST_F(MisbehavingReceiver, ThatDripsByteByByteRunsIntoTheDeadline) {
  std::atomic<int> bytes = 0;
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    while (peer.send("x") && ++bytes && !peer.wait_until_gone(20)) continue;
  });
  const std::string error = error_of(receiver.url(), hasty());
  EXPECT_NE(error.find("timed out"), std::string::npos) << error;
  EXPECT_GT(bytes, 0);
}

TEST_F(MisbehavingReceiver, ThatDripsItsHeaderRunsIntoTheDeadline) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) {
    peer.send("HTTP/1.1 200 OK\r\n");
    while (peer.send("X-Y: z\r\n") && !peer.wait_until_gone(20)) continue;
  });
  const std::string error = error_of(receiver.url(), hasty());
  EXPECT_NE(error.find("timed out"), std::string::npos) << error;
}

TEST_F(MisbehavingReceiver, ThatSendsTenGigabytesIsCut) {
  std::atomic<std::uint64_t> sent = 0;
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    const std::string block(1 << 16, 'x');
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n");
    while (sent < 10'000'000'000 && peer.send(block)) sent += block.size();
  });
  const std::string error = error_of(receiver.url());
  EXPECT_NE(error.find("65536"), std::string::npos) << error;
  EXPECT_LT(sent, 100'000'000u);  // What fits into buffers, not what was meant.
}

TEST_F(MisbehavingReceiver, ThatSendsWithoutEndInPiecesIsCut) {
  std::atomic<std::uint64_t> sent = 0;
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    const std::string piece = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (sent < 10'000'000'000 && peer.send(piece)) sent += piece.size();
  });
  const std::string error = error_of(receiver.url());
  EXPECT_NE(error.find("65536"), std::string::npos) << error;
  EXPECT_LT(sent, 100'000'000u);
}

TEST_F(MisbehavingReceiver, ThatSendsAnswersWithoutEndInItsHeaderIsCut) {
  std::atomic<std::uint64_t> sent = 0;
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    const std::string field = "X-Y: " + std::string(1000, 'x') + "\r\n";
    peer.send("HTTP/1.1 200 OK\r\n");
    while (sent < 10'000'000'000 && peer.send(field)) sent += field.size();
  });
  EXPECT_FALSE(error_of(receiver.url()).empty());
  EXPECT_LT(sent, 100'000'000u);
}

TEST_F(MisbehavingReceiver, ThatRedirectsIsNotFollowed) {
  HttpReceiver other([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); });
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    peer.answer("302 Found", "", "Location: " + other.url() + "\r\n");
  });
  EXPECT_EQ(error_of(receiver.url()), "the receiver answered 302: redirects are not followed");
  EXPECT_TRUE(other.received().empty());
}

TEST_F(MisbehavingReceiver, ThatHangsUpInTheMiddleIsAFailure) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort");
    peer.hang_up();
  });
  EXPECT_FALSE(error_of(receiver.url()).empty());
}

TEST_F(MisbehavingReceiver, ThatHangsUpWithoutAWordIsAFailure) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.hang_up(); });
  EXPECT_FALSE(error_of(receiver.url()).empty());
}

TEST_F(MisbehavingReceiver, ThatDoesNotSpeakHttpIsAFailure) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) {
    peer.send("+PONG\r\n-ERR unknown command\r\n");
    peer.wait_until_gone(-1);
  });
  EXPECT_FALSE(error_of(receiver.url(), hasty()).empty());
}

TEST_F(MisbehavingReceiver, ThatIsNotThereIsAFailure) {
  std::string url;
  {
    HttpReceiver receiver([](const HttpReceived&, HttpPeer&) {});
    url = receiver.url();
  }
  EXPECT_FALSE(error_of(url).empty());
}

}  // namespace
}  // namespace bide::server
