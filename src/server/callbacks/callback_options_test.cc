#include "server/callbacks/callback_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace bide::server {
namespace {

CallbackOptions options() {
  CallbackOptions made;
  made.policy = AddressPolicy::make("public-only").value();
  made.queues = {"hooks", "urgent-hooks"};
  return made;
}

Job job(Headers headers, std::string queue = "hooks") {
  Job made;
  made.kind = "greet";
  made.queue = std::move(queue);
  made.headers = std::move(headers);
  return made;
}

// "ok", or code and field.
std::string problem_of(const Job& given, const CallbackOptions& chosen = options()) {
  const auto problem = find_callback_problem(chosen, given);
  return problem ? problem->code + " " + problem->field : "ok";
}

TEST(CallbackCheck, AJobThatSaysNothingAboutCallbacksIsFine) {
  EXPECT_EQ(problem_of(job({}, "default")), "ok");
  EXPECT_EQ(problem_of(job({{"colour", "green"}}, "default")), "ok");
  EXPECT_EQ(problem_of(job({}, "default"), {}), "ok");
}

TEST(CallbackCheck, ACallbackGoesToAnAllowedAddressFromAQueueThatIsDelivered) {
  EXPECT_EQ(problem_of(job({{"bide-callback", "https://example.org/"}})), "ok");
  EXPECT_EQ(problem_of(job({{"bide-callback", "https://example.org/"}}, "urgent-hooks")), "ok");
  EXPECT_EQ(problem_of(job({{"bide-callback", "https://example.org/"}}, "default")), "invalid_callback queue");
  EXPECT_EQ(problem_of(job({{"bide-callback", "http://127.1/"}})), "callback_address_blocked callback");
  EXPECT_EQ(problem_of(job({{"bide-callback", "https://example.org/"}}), {}), "callback_address_blocked callback");
}

TEST(CallbackCheck, TheQueueToUseIsNamed) {
  const auto problem = find_callback_problem(options(), job({{"bide-callback", "https://example.org/"}}, "default"));
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->detail.find("'hooks'"), std::string::npos) << problem->detail;
  EXPECT_EQ(problem->status, 422);
  EXPECT_EQ(callback_queue(options()), "hooks");
}

TEST(CallbackCheck, WhoIsToldMayBeSaidInEveryQueue) {
  EXPECT_EQ(problem_of(job({{"bide-on-done", "https://example.org/"}}, "default")), "ok");
  EXPECT_EQ(problem_of(job({{"bide-on-done", "http://[::1]/"}}, "default")), "callback_address_blocked on_done");
}

TEST(CallbackCheck, AReplyGoesToAQueueOfWorkers) {
  EXPECT_EQ(problem_of(job({{"bide-reply-queue", "replies"}}, "default")), "ok");
  EXPECT_EQ(problem_of(job({{"bide-reply-queue", "../x"}}, "default")), "invalid_queue_name reply_queue");
  EXPECT_EQ(problem_of(job({{"bide-reply-queue", "hooks"}}, "default")), "invalid_callback reply_queue");
  Job long_kind = job({{"bide-reply-queue", "replies"}}, "default");
  long_kind.kind = std::string(122, 'k');
  EXPECT_EQ(problem_of(long_kind), "invalid_kind_name kind");
  long_kind.kind.pop_back();
  EXPECT_EQ(problem_of(long_kind), "ok");
}

TEST(CallbackOptions, AreInRange) {
  EXPECT_TRUE(validate(options()));
  EXPECT_TRUE(validate(CallbackOptions{}));
  const std::pair<std::string, std::function<void(CallbackOptions&)>> cases[] = {
      {"callbacks.queues", [](CallbackOptions& o) { o.queues.clear(); }},
      {"callbacks.queues", [](CallbackOptions& o) { o.queues = {"a b"}; }},
      {"callbacks.concurrency", [](CallbackOptions& o) { o.concurrency = 0; }},
      {"callbacks.per_host", [](CallbackOptions& o) { o.per_host = 0; }},
      {"callbacks.per_host", [](CallbackOptions& o) { o.per_host = 65; }},
      {"callbacks.accepted", [](CallbackOptions& o) { o.accepted = 0; }},
      {"callbacks.connect_within", [](CallbackOptions& o) { o.answer_within = Milliseconds(0); }},
      {"callbacks.lease", [](CallbackOptions& o) { o.lease = Milliseconds(10); }},
      {"callbacks.failures_to_open", [](CallbackOptions& o) { o.failures_to_open = 0; }},
      {"callbacks.shortest_pause", [](CallbackOptions& o) { o.longest_pause = Milliseconds(1); }},
      {"secret 1 of the callbacks", [](CallbackOptions& o) { o.secrets = {"hunter2"}; }},
  };
  for (const auto& [setting, spoil] : cases) {
    CallbackOptions spoiled = options();
    spoil(spoiled);
    const Status status = validate(spoiled);
    ASSERT_FALSE(status) << setting;
    EXPECT_TRUE(status.error().message.starts_with(setting)) << status.error().message;
    EXPECT_EQ(status.error().message.find("hunter2"), std::string::npos);
  }
}

TEST(CallbackCheck, AHeaderThatCannotBeSentToACallbackIsRefused) {
  const std::pair<std::string, std::string> callback{"bide-callback", "https://example.org/"};
  EXPECT_EQ(problem_of(job({callback, {"Trace-Id", "a b"}})), "ok");
  EXPECT_EQ(problem_of(job({callback, {"trace id", "a"}})), "invalid_header headers");
  EXPECT_EQ(problem_of(job({callback, {"gr\u00fcn", "a"}})), "invalid_header headers");
  EXPECT_EQ(problem_of(job({{"trace id", "a"}}, "default")), "ok");
}

TEST(CallbackCheck, ACallbackToTheServerItselfIsRefused) {
  const auto own = std::make_shared<OwnListeners>();
  own->set({{.host = "127.0.0.1", .port = 7070}});
  CallbackOptions chosen = options();
  chosen.policy = AddressPolicy::make("public-only", {"127.0.0.1:*", "localhost:*"}).value();
  chosen.own_listeners = own;
  for (const char* url : {"http://127.0.0.1:7070/", "http://localhost:7070/x"}) {
    for (const char* header : {"bide-callback", "bide-on-done"}) {
      EXPECT_TRUE(problem_of(job({{header, url}}), chosen).starts_with("callback_address_blocked")) << url;
    }
  }
  EXPECT_EQ(problem_of(job({{"bide-callback", "http://127.0.0.1:7071/"}}), chosen), "ok");
}

}  // namespace
}  // namespace bide::server
