#include "server/callbacks/host_book.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace bide::server {
namespace {

using namespace std::chrono_literals;

const Moment kNow = Moment(1h);

TEST(HostBook, ForgetsTheHostThatWasQuietForLongest) {
  HostBook book({}, 2);
  book.at("a:80", kNow);
  book.at("b:80", kNow + 1s);
  book.at("a:80", kNow + 2s);
  book.at("c:80", kNow + 3s);
  const auto status = book.status(kNow + 3s);
  ASSERT_EQ(status.size(), 2u);
  EXPECT_EQ(status[0].host, "a:80");
  EXPECT_EQ(status[1].host, "c:80");
}

TEST(HostBook, DoesNotForgetAHostThatIsBusy) {
  HostBook book({}, 1);
  Host& busy = book.at("a:80", kNow);
  busy.line.sent();
  book.at("b:80", kNow + 1s);
  EXPECT_EQ(book.size(), 2u);
  EXPECT_EQ(&book.at("a:80", kNow + 2s), &busy);
  busy.line.answered(HostSign::kWell, kNow, kNow + 2s);
  book.at("c:80", kNow + 3s);
  EXPECT_EQ(book.size(), 2u);
}

TEST(HostBook, ShowsWhatItKnows) {
  HostBook book({.most = 8, .failures_to_open = 1, .shortest_pause = 5s, .longest_pause = 10s}, 10);
  Host& host = book.at("a:80", kNow);
  host.line.sent();
  host.line.answered(HostSign::kFailing, kNow, kNow + 1s);
  host.last_error = "refused";
  const HostStatus status = book.status(kNow + 2s).at(0);
  EXPECT_EQ(status.breaker, HostLine::Breaker::kOpen);
  EXPECT_EQ(status.pause, 4s);
  EXPECT_EQ(status.failures, 1);
  EXPECT_EQ(status.last_error, "refused");
}

}  // namespace
}  // namespace bide::server
