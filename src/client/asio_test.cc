#include "bide/asio.h"

#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <thread>

#include "support/temporary_directory.h"

namespace bide {
namespace {

using namespace std::chrono_literals;

class ClientWithAsio : public ::testing::Test {
 protected:
  support::TemporaryDirectory directory_;
  Client client_ = Client::open("bide:" + directory_.path() + "/data?durability=none").value();
};

TEST_F(ClientWithAsio, ACallbackRunsOnItsExecutorWhichHasWorkUntilThen) {
  boost::asio::io_context context;
  std::thread::id ran_on;
  const EnqueueOptions later{.delay = 1h};
  async_enqueue(client_, "work", "body", later,
                boost::asio::bind_executor(context.get_executor(), [&](const Result<JobId>& id) {
                  EXPECT_TRUE(id);
                  ran_on = std::this_thread::get_id();
                }));
  context.run();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

boost::asio::awaitable<void> enqueue_and_ask(Client client, std::string* body, ErrorCode* asked) {
  const EnqueueOptions later{.delay = 1h};
  const RequestOptions soon{.timeout = 20ms};
  const Result<JobId> id = co_await async_enqueue(client, "work", "body", later, boost::asio::use_awaitable);
  *body = client.find(id.value()).value().job.body;
  const auto reply = co_await async_request<std::string>(client, "nobody", "", soon, boost::asio::use_awaitable);
  if (!reply) *asked = reply.error().code;
}

TEST_F(ClientWithAsio, ACoroutineOfAsioAwaitsIt) {
  boost::asio::io_context context;
  std::string body;
  ErrorCode asked = ErrorCode::kNotFound;
  boost::asio::co_spawn(context, enqueue_and_ask(client_, &body, &asked), boost::asio::detached);
  context.run();
  EXPECT_EQ(body, "body");
  EXPECT_EQ(asked, ErrorCode::kTimedOut);
}

}  // namespace
}  // namespace bide
