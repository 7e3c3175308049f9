// The delivery log, as its routes show it, and deliveries that are done again.

#include "callbacks/callback_bench.h"
#include "wire/json_reader.h"

namespace bide::server {
namespace {

class Replayed : public CallbackTest {
 protected:
  // The value of the first field of this name.
  static std::string field(const std::string& json, const std::string& name) {
    const std::size_t at = json.find("\"" + name + "\":");
    if (at == std::string::npos) return "none";
    const std::size_t from = at + name.size() + 3;
    const std::size_t end = json.find_first_of(",}", from);
    std::string value = json.substr(from, end - from);
    if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
    return value;
  }
  Response log(std::map<std::string, std::string> query = {}) {
    return ask(Method::kGet, "/v1/callbacks", {.query = std::move(query)});
  }
  std::string newest_delivery() {
    const std::string body = log().body;
    return field(body.substr(body.find("\"deliveries\":")), "id");
  }
  Response replay(const std::string& delivery) {
    return ask(Method::kPost, "/v1/callbacks/{id}/replay", {.captured = {{"id", delivery}}});
  }

  std::atomic<int> status = 200;
  HttpReceiver receiver{
      [this](const HttpReceived&, HttpPeer& peer) { peer.answer(std::to_string(status) + " Status"); }};
};

TEST_F(Replayed, EveryDeliveryIsShown) {
  start();
  status = 400;
  Job job = job_to(receiver.url("/a?secret"));
  job.retry = RetryPolicy::none();
  const JobInfo info = deliver(job);
  const Response shown = log();
  EXPECT_EQ(shown.status, 200);
  wire::JsonReader in(shown.body);
  in.raw();
  in.end();
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(field(shown.body, "policy"), "allow-list");
  EXPECT_EQ(field(shown.body, "job"), info.job.id.to_string());
  EXPECT_EQ(field(shown.body, "status"), "400");
  EXPECT_EQ(field(shown.body, "outcome"), "failed");
  EXPECT_EQ(field(shown.body, "url"), "http://127.0.0.1:" + std::to_string(receiver.port()) + "/a?***");
  EXPECT_EQ(field(shown.body, "host"), "127.0.0.1:" + std::to_string(receiver.port()));
  EXPECT_EQ(field(shown.body, "breaker"), "closed");
}

TEST_F(Replayed, TheLogIsReadPageByPageAndByJob) {
  start();
  const JobId first = deliver(job_to(receiver.url())).job.id;
  const JobId second = deliver(job_to(receiver.url())).job.id;
  const std::string page = log({{"limit", "1"}}).body;
  EXPECT_EQ(field(page, "job"), second.to_string());
  const std::string rest = log({{"before", field(page, "next")}}).body;
  EXPECT_EQ(field(rest, "job"), first.to_string());
  EXPECT_EQ(field(rest, "next"), "null");
  EXPECT_EQ(field(log({{"job", first.to_string()}}).body, "job"), first.to_string());
}

TEST_F(Replayed, AQueryThatIsWrongIsToldSo) {
  start();
  for (const std::string limit : {"0", "-1", "abc", "1001", "1.5"})
    EXPECT_EQ(log({{"limit", limit}}).status, 400) << limit;
  EXPECT_EQ(log({{"before", "x"}}).status, 400);
  EXPECT_NE(log({{"limt", "1"}}).body.find("did you mean 'limit'?"), std::string::npos);
}

TEST_F(Replayed, ADeadJobIsPutBack) {
  start();
  status = 410;
  const JobId id = deliver(job_to(receiver.url())).job.id;
  status = 200;
  const Response answer = replay(newest_delivery());
  EXPECT_EQ(answer.body, R"({"id":")" + id.to_string() + R"(","how":"replayed"})");
  EXPECT_EQ(end_of(id).state, JobState::kDone);
}

TEST_F(Replayed, AWaitingJobIsHastened) {
  start();
  status = 400;
  Job job = job_to(receiver.url());
  job.retry = RetryPolicy::fixed(1h, 5);
  const JobId id = enqueue(job);
  witness->wait_for_settled(1);
  status = 200;
  EXPECT_EQ(field(replay(newest_delivery()).body, "how"), "hastened");
  EXPECT_EQ(end_of(id).attempts, 2u);
}

TEST_F(Replayed, ADoneJobIsEnqueuedAnew) {
  start();
  const JobId id = deliver(job_to(receiver.url("/again"), "the same body")).job.id;
  const std::string answer = replay(newest_delivery()).body;
  EXPECT_EQ(field(answer, "how"), "enqueued");
  const JobId another = JobId::parse(field(answer, "id")).value();
  EXPECT_NE(another, id);
  EXPECT_EQ(end_of(another).state, JobState::kDone);
  EXPECT_EQ(receiver.received().at(1).body, "the same body");
}

TEST_F(Replayed, WhatIsNotKnownIsNotFound) {
  start();
  EXPECT_EQ(replay("0190d6c0-0000-7000-8000-000000000000").status, 404);
  EXPECT_EQ(replay("nonsense").status, 422);
}

TEST_F(Replayed, ABodyThatIsNotKeptCannotBeDeliveredAgain) {
  CallbackOptions chosen = options();
  chosen.log_bytes = 0;
  start(chosen);
  deliver(job_to(receiver.url()));
  const Response answer = replay(newest_delivery());
  EXPECT_EQ(answer.status, 409);
  EXPECT_NE(answer.body.find("not kept any more"), std::string::npos) << answer.body;
}

TEST_F(Replayed, TheLogIsBounded) {
  CallbackOptions chosen = options();
  chosen.log_entries = 3;
  start(chosen);
  for (int i = 0; i < 5; ++i) deliver(job_to(receiver.url()));
  const std::string body = log().body;
  std::size_t count = 0;
  for (std::size_t at = body.find("\"outcome\""); at != std::string::npos; at = body.find("\"outcome\"", at + 1))
    ++count;
  EXPECT_EQ(count, 3u);
}

}  // namespace
}  // namespace bide::server
