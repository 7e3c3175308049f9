#include <gtest/gtest.h>

#include <set>

#include "core/forwarding_broker.h"
#include "server/api/api_test_bench.h"
#include "server/api/idempotency.h"
#include "wire/batch_json.h"
#include "wire/job_json.h"

namespace bide::server {
namespace {

class EnqueueRoute : public ApiBench {
 protected:
  std::uint64_t jobs() { return audit().live; }
};

TEST_F(EnqueueRoute, OneJobIsCreatedAndCanBeFound) {
  const Response response =
      post("/v1/jobs", R"({"kind":"resize","queue":"images","body":{"width" : 640},"priority":3})");
  EXPECT_EQ(response.status, 201);
  const std::string id = field_of(response.body, "id");
  ASSERT_EQ(response.fields.size(), 1u);
  EXPECT_EQ(response.fields[0], (std::pair<std::string, std::string>("Location", "/v1/jobs/" + id)));
  const Response job = get("/v1/jobs/" + id);
  EXPECT_EQ(job.status, 200);
  EXPECT_EQ(field_of(job.body, "kind"), "resize");
  EXPECT_EQ(field_of(job.body, "body"), R"({"width" : 640})");
  EXPECT_EQ(field_of(job.body, "content_type"), "application/json");
  EXPECT_EQ(field_of(job.body, "state"), "ready");
  EXPECT_EQ(field_of(job.body, "priority"), "3");
}

TEST_F(EnqueueRoute, TheSameIdAgainIsTheSameJob) {
  const std::string body = R"({"kind":"a","id":"018f3c1e-7d5a-7000-8000-000000000001"})";
  EXPECT_EQ(post("/v1/jobs", body).status, 201);
  const Response again = post("/v1/jobs", body);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(field_of(again.body, "existed"), "true");
  EXPECT_EQ(jobs(), 1u);
}

TEST_F(EnqueueRoute, DueInThePastIsAcceptedWithAWarning) {
  const Response response = post("/v1/jobs", R"({"kind":"a","due":"2020-01-01T00:00:00Z"})");
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(field_of(response.body, "warnings"), R"(["due is in the past: the job runs now"])");
}

TEST_F(EnqueueRoute, OneBadItemInAThousandSparesTheOthers) {
  std::string body = "[";
  for (int i = 0; i < 1000; ++i)
    body += (i == 0 ? "" : ",") + std::string(i == 500 ? R"({"queue":"x"})" : R"({"kind":"a"})");
  const Response response = post("/v1/jobs", body + "]");
  EXPECT_EQ(response.status, 200);
  const auto results = items_of(response.body, "results");
  ASSERT_EQ(results.size(), 1000u);
  EXPECT_EQ(field_of(results[500], "index"), "500");
  EXPECT_EQ(field_of(results[500], "status"), "422");
  EXPECT_EQ(field_of(field_of(results[500], "problem"), "code"), "missing_field");
  EXPECT_EQ(field_of(results[501], "status"), "201");
  EXPECT_EQ(field_of(response.body, "enqueued"), "999");
  EXPECT_EQ(field_of(response.body, "failed"), "1");
  EXPECT_EQ(jobs(), 999u);
}

TEST_F(EnqueueRoute, AllOrNothingWhenAskedFor) {
  const std::string body = R"({"jobs":[{"kind":"a"},{"queue":"x"},{"kind":"b"}]})";
  const Response response = post("/v1/jobs?atomic=true", body);
  expect_problem(response, 422, "invalid_batch", "1 of 3 items");
  const auto results = items_of(response.body, "results");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(field_of(results[0], "index"), "1");
  EXPECT_EQ(jobs(), 0u);
  EXPECT_EQ(field_of(post("/v1/jobs?atomic=true", R"([{"kind":"a"},{"kind":"b"}])").body, "enqueued"), "2");
  expect_problem(post("/v1/jobs?atomic=maybe", body), 400, "invalid_parameter");
}

TEST_F(EnqueueRoute, LinesAreAnsweredByLines) {
  const Response response =
      post("/v1/jobs", "{\"kind\":\"a\"}\n{\"kind\":}\n{\"kind\":\"b\"}\n", {{"content-type", "application/x-ndjson"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/x-ndjson");
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < response.body.size();) {
    const std::size_t end = response.body.find('\n', at);
    lines.push_back(response.body.substr(at, end - at));
    at = end + 1;
  }
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(field_of(lines[0], "status"), "201");
  EXPECT_EQ(field_of(lines[1], "status"), "400");
  EXPECT_EQ(field_of(field_of(lines[1], "problem"), "code"), "invalid_json");
  EXPECT_EQ(field_of(lines[2], "index"), "2");
  EXPECT_EQ(jobs(), 2u);
}

struct BadRow {
  std::string name;
  std::string body;
  int status;
  std::string code;
};

TEST_F(EnqueueRoute, BadRequestsAreToldWhatIsWrongAndStoreNothing) {
  const std::string deep(10'000, '[');
  const std::vector<BadRow> rows = {
      {"not JSON", "kind=a", 400, "invalid_json"},
      {"cut", R"({"kind":"a")", 400, "invalid_json"},
      {"empty", "", 400, "empty_body"},
      {"blank", " \n ", 400, "empty_body"},
      {"a number", "5", 400, "expected_object"},
      {"a string", "\"x\"", 400, "expected_object"},
      {"deep", deep, 400, "json_too_deep"},
      {"deep body", R"({"kind":"a","body":)" + deep + std::string(10'000, ']') + "}", 400, "json_too_deep"},
      {"unknown field", R"({"kind":"a","qeue":"x"})", 400, "unknown_field"},
      {"empty queue", R"({"kind":"a","queue":""})", 422, "invalid_queue_name"},
      {"long queue", R"({"kind":"a","queue":")" + std::string(300, 'x') + "\"}", 422, "invalid_queue_name"},
      {"path queue", R"({"kind":"a","queue":"../x"})", 422, "invalid_queue_name"},
      {"spaced queue", R"({"kind":"a","queue":"a b"})", 422, "invalid_queue_name"},
      {"control queue", R"({"kind":"a","queue":"a\u0001"})", 422, "invalid_queue_name"},
      {"dotted queue", R"({"kind":"a","queue":".a"})", 422, "invalid_queue_name"},
      {"kind missing", R"({"queue":"a"})", 422, "missing_field"},
      {"due tomorrow", R"({"kind":"a","due":"tomorrow"})", 422, "invalid_time"},
      {"due without zone", R"({"kind":"a","due":"2030-01-01T00:00:00"})", 422, "invalid_time"},
      {"due too far", R"({"kind":"a","due":"3030-01-01T00:00:00Z"})", 422, "too_far"},
      {"due and delay", R"({"kind":"a","due":"2030-01-01T00:00:00Z","delay":"5s"})", 422, "conflicting_fields"},
      {"delay -5", R"({"kind":"a","delay":-5})", 422, "invalid_duration"},
      {"delay NaN", R"({"kind":"a","delay":"NaN"})", 422, "invalid_duration"},
      {"delay 1e308", R"({"kind":"a","delay":1e308})", 422, "invalid_duration"},
      {"delay parsecs", R"({"kind":"a","delay":"5 parsecs"})", 422, "invalid_duration"},
      {"no attempts", R"({"kind":"a","retry":{"policy":"fixed","wait":"1s","max_attempts":0}})", 422, "invalid_retry"},
      {"many attempts", R"({"kind":"a","retry":{"policy":"fixed","wait":"1s","max_attempts":1000000000}})", 422,
       "invalid_retry"},
      {"no steps", R"({"kind":"a","retry":{"policy":"steps","waits":[]}})", 422, "invalid_retry"},
      {"negative factor", R"({"kind":"a","retry":{"policy":"exponential","factor":-2}})", 422, "invalid_retry"},
  };
  for (const BadRow& row : rows) {
    SCOPED_TRACE(row.name);
    const Response response = post("/v1/jobs", row.body);
    expect_problem(response, row.status, row.code);
    EXPECT_TRUE(row.code != "invalid_json" || !field_of(response.body, "offset").empty());
  }
  expect_problem(post("/v1/jobs", "{}", {{"content-type", "application/x-www-form-urlencoded"}}), 415,
                 "unsupported_media_type", "curl --json");
  expect_problem(post("/v1/jobs", R"({"kind":"a"})", {{"content-type", ""}}), 415, "unsupported_media_type",
                 "no Content-Type");
  expect_problem(post("/v1/jobs?atomc=1", R"({"kind":"a"})"), 400, "unknown_parameter", "did you mean 'atomic'?");
  EXPECT_EQ(jobs(), 0u);
  for (const char* type : {"APPLICATION/JSON", "application/JSON; charset=utf-8", "application/cloudevents+JSON"}) {
    EXPECT_EQ(post("/v1/jobs", R"({"kind":"a"})", {{"content-type", type}}).status, 201) << type;
  }
  EXPECT_EQ(post("/v1/jobs", "{\"kind\":\"a\"}\n", {{"content-type", "Application/X-NDJSON"}}).status, 200);
}

TEST_F(EnqueueRoute, APastIsForAdministrators) {
  const std::string body = R"({"kind":"a","id":")" + id_for_key("x", "k", 0).to_string() +
                           R"(","due":"2020-01-01T00:00:00Z","past":{"attempts":2,"counts":{"failed":2},"errors":[)"
                           R"({"attempt":2,"at":"2020-01-02T00:00:00Z","fault":"failed","text":"no"}],)"
                           R"("dead_reason":"exhausted","finished":"2020-01-02T00:00:00Z"}})";
  caller_scopes_ = 7;
  expect_problem(post("/v1/jobs", body), 403, "forbidden", "scope admin");
  EXPECT_EQ(jobs(), 0u);
  caller_scopes_ = 15;
  const Response response = post("/v1/jobs", body);
  EXPECT_EQ(response.status, 201) << response.body;
  EXPECT_EQ(field_of(response.body, "warnings"), "");
  const std::string found = get("/v1/jobs/" + field_of(response.body, "id")).body;
  EXPECT_EQ(field_of(found, "state"), "dead");
  EXPECT_EQ(field_of(found, "attempts"), "2");
  EXPECT_EQ(field_of(found, "dead_reason"), "exhausted");
  EXPECT_EQ(field_of(found, "finished"), "2020-01-02T00:00:00.000Z");
  expect_problem(post("/v1/jobs", R"({"kind":"a","past":{"attemps":2}})"), 400, "unknown_field", "attempts");
  expect_problem(post("/v1/jobs", R"({"kind":"a","past":{"finished":"2020-01-02T00:00:00Z"}})"), 422, "invalid_past");
}

TEST_F(EnqueueRoute, AUniqueKeyThatIsHeldIsAConflict) {
  enqueue(R"({"kind":"a","unique_key":"k"})");
  expect_problem(post("/v1/jobs", R"({"kind":"a","unique_key":"k"})"), 409, "already_exists");
}

TEST_F(EnqueueRoute, AFullStoreSaysWhenToComeAgain) {
  open({}, 3);
  for (int i = 0; i < 3; ++i) enqueue(R"({"kind":"a"})");
  for (const std::string body : {R"({"kind":"a"})", R"([{"kind":"a"},{"kind":"b"}])"}) {
    const Response response = post("/v1/jobs", body);
    expect_problem(response, 429, "overloaded");
    ASSERT_EQ(response.fields.size(), 1u);
    EXPECT_EQ(response.fields[0].first, "Retry-After");
    EXPECT_GE(std::stoi(response.fields[0].second), 1);
  }
}

TEST_F(EnqueueRoute, CallbacksAreCheckedAndHaveTheirOwnQueue) {
  open({.callback_queue = "callbacks", .find_callback_problem = [](const Job& job) -> std::optional<wire::Problem> {
          if (wire::header_of(job, wire::kCallbackHeader) != "http://10.0.0.1/") return std::nullopt;
          return wire::make_problem("callback_address_blocked", "no", "callback");
        }});
  expect_problem(post("/v1/jobs", R"({"kind":"a","callback":"http://10.0.0.1/"})"), 422, "callback_address_blocked");
  const std::string id = enqueue(R"({"kind":"a","callback":"http://example.org/"})");
  EXPECT_EQ(field_of(get("/v1/jobs/" + id).body, "queue"), "callbacks");
  EXPECT_EQ(field_of(get("/v1/jobs/" + enqueue(R"({"kind":"a"})")).body, "queue"), "default");
}

TEST_F(EnqueueRoute, AKeyMakesARequestCountOnce) {
  const Fields key = {{"idempotency-key", "order-17"}};
  const Response first = post("/v1/jobs", R"({"kind":"a","body":1})", key);
  EXPECT_EQ(first.status, 201);
  const Response again = post("/v1/jobs", R"({"kind":"a","body":1})", key);
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.fields.back().first, "Idempotent-Replayed");
  expect_problem(post("/v1/jobs", R"({"kind":"a","body":2})", key), 422, "idempotency_key_reused");
  caller_name_ = "somebody else";
  EXPECT_NE(field_of(post("/v1/jobs", R"({"kind":"a","body":2})", key).body, "id"), field_of(first.body, "id"));
  EXPECT_EQ(jobs(), 2u);
}

TEST_F(EnqueueRoute, AnIdThatStandsForAKeyOfAnotherIsNotGivenByHand) {
  const JobId id = id_for_key("somebody else", "order-17", 0);
  expect_problem(post("/v1/jobs", R"({"kind":"a","id":")" + id.to_string() + "\"}"), 422, "invalid_id");
  EXPECT_EQ(jobs(), 0u);
}

TEST_F(EnqueueRoute, AKeyIsKeptWithTheJobAcrossARestart) {
  const Fields key = {{"idempotency-key", "order-17"}};
  const std::string batch = R"([{"kind":"a"},{"kind":"b"},{"bad":1}])";
  const auto first = items_of(post("/v1/jobs", batch, key).body, "results");
  open({});
  const auto again = items_of(post("/v1/jobs", batch, key).body, "results");
  EXPECT_EQ(first, again);
  EXPECT_EQ(jobs(), 2u);
  const auto other = items_of(post("/v1/jobs", R"([{"kind":"a"},{"kind":"c"}])", key).body, "results");
  EXPECT_EQ(field_of(other[0], "status"), "201");
  EXPECT_EQ(field_of(other[1], "status"), "422");
  EXPECT_EQ(jobs(), 2u);
}

TEST_F(EnqueueRoute, AKeyOfAJobThatIsDoneStillCounts) {
  const Fields key = {{"idempotency-key", "k"}};
  const Response first = post("/v1/jobs", R"({"kind":"a"})", key);
  const std::string lease = lease_one();
  EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"done")")).status, 200);
  EXPECT_EQ(post("/v1/jobs", R"({"kind":"a"})", key).body, first.body);
  expect_problem(post("/v1/jobs", R"({"kind":"b"})", key), 422, "idempotency_key_reused");
  open({});
  EXPECT_EQ(post("/v1/jobs", R"({"kind":"a"})", key).body, first.body);
  // What a done job was is kept for a while, so a process that did not see it made can tell another request from it.
  expect_problem(post("/v1/jobs", R"({"kind":"b"})", key), 422, "idempotency_key_reused");
  EXPECT_EQ(jobs(), 0u);
}

TEST_F(EnqueueRoute, AKeyStaysTakenWhenItsJobIsDoneAndForgotten) {
  open({}, 1'000'000, 1);  // Of what is done, the last one is remembered.
  const Fields key = {{"idempotency-key", "k"}};
  const auto is_replayed = [](const Response& response) {
    return !response.fields.empty() && response.fields.back().first == "Idempotent-Replayed";
  };
  const auto work = [&] { post("/v1/leases/settle", settlement(lease_one(), R"("outcome":"done")")); };
  const Response first = post("/v1/jobs", R"({"kind":"a"})", key);
  work();
  EXPECT_TRUE(is_replayed(post("/v1/jobs", R"({"kind":"a"})", key)));
  enqueue(R"({"kind":"other"})");
  work();
  EXPECT_EQ(get("/v1/jobs/" + field_of(first.body, "id")).status, 404);
  EXPECT_EQ(jobs(), 0u);

  const Response second = post("/v1/jobs", R"({"kind":"a"})", key);
  EXPECT_TRUE(is_replayed(second));
  EXPECT_EQ(second.body, first.body);
  expect_problem(post("/v1/jobs", R"({"kind":"b"})", key), 422, "idempotency_key_reused");
  EXPECT_EQ(jobs(), 0u);
}

TEST_F(EnqueueRoute, AKeyIsFreeWhenItsJobIsCancelled) {
  const Fields key = {{"idempotency-key", "k"}};
  const Response first = post("/v1/jobs", R"({"kind":"a"})", key);
  EXPECT_EQ(call(Method::kDelete, "/v1/jobs/" + field_of(first.body, "id")).status, 200);
  EXPECT_EQ(jobs(), 0u);
  const Response second = post("/v1/jobs", R"({"kind":"a"})", key);
  EXPECT_EQ(second.status, 201);
  EXPECT_TRUE(second.fields.empty() || second.fields.back().first != "Idempotent-Replayed");
  EXPECT_EQ(jobs(), 1u);
}

TEST_F(EnqueueRoute, AKeyMustBeReasonable) {
  expect_problem(post("/v1/jobs", R"({"kind":"a"})", {{"idempotency-key", std::string(256, 'x')}}), 400,
                 "invalid_idempotency_key");
  expect_problem(post("/v1/jobs", R"({"kind":"a"})", {{"idempotency-key", "a b"}}), 400, "invalid_idempotency_key");
  expect_problem(post("/v1/jobs", R"({"kind":"a"})", {{"idempotency-key", ""}}), 400, "invalid_idempotency_key");
  expect_problem(
      post("/v1/jobs", R"({"kind":"a","id":"018f3c1e-7d5a-7000-8000-000000000001"})", {{"idempotency-key", "k"}}), 422,
      "conflicting_fields");
}

// A broker that answers an enqueue when it is told to.
class SlowBroker : public core::ForwardingBroker {
 public:
  explicit SlowBroker(Broker& real) : real_(real) {}
  std::function<void()> go;
  Capabilities can = {};
  std::optional<Error> refuses;
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override {
    if (refuses) return done(std::vector<Result<Enqueued>>(jobs.size(), *refuses));
    go = [this, jobs = std::move(jobs), done = std::move(done)] { real_.enqueue(jobs, done); };
  }
  Pressure pressure() const override { return {}; }
  Capabilities capabilities() const override { return can; }

 private:
  Broker& next_broker() const override { return real_; }

  Broker& real_;
};

TEST_F(EnqueueRoute, AKeyThatIsUnderWayIsAConflict) {
  SlowBroker slow(store_->broker());
  Api api({.broker = std::shared_ptr<Broker>(std::shared_ptr<void>(), &slow), .inspector = &store_->inspector()});
  router_ = std::make_unique<Router>(api.routes());
  const Fields key = {{"idempotency-key", "k"}};
  const auto first = start(Method::kPost, "/v1/jobs", R"({"kind":"a"})", key);
  expect_problem(post("/v1/jobs", R"({"kind":"a"})", key), 409, "idempotency_conflict");
  slow.go();
  EXPECT_EQ(first->wait().status, 201);
  const auto again = start(Method::kPost, "/v1/jobs", R"({"kind":"a"})", key);
  slow.go();
  EXPECT_EQ(again->wait().body, first->wait().body);
  slow.can.idempotent_ids = false;
  expect_problem(post("/v1/jobs", R"({"kind":"a"})", key), 422, "idempotency_unsupported");
  router_ = nullptr;
}

TEST_F(EnqueueRoute, WhatTheBrokerRefusesIsToldAsWhatItIs) {
  SlowBroker broken(store_->broker());
  Api api({.broker = std::shared_ptr<Broker>(std::shared_ptr<void>(), &broken), .inspector = &store_->inspector()});
  router_ = std::make_unique<Router>(api.routes());
  struct Row {
    ErrorCode code;
    int status;
    std::string name;
    bool come_again;
  };
  const std::vector<Row> rows = {{ErrorCode::kDiskFull, 507, "disk_full", false},
                                 {ErrorCode::kOverloaded, 429, "overloaded", true},
                                 {ErrorCode::kUnavailable, 503, "unavailable", true},
                                 {ErrorCode::kIoError, 500, "io_error", false}};
  for (const Row& row : rows) {
    broken.refuses = Error{row.code, "no"};
    for (const std::string body : {R"({"kind":"a"})", R"([{"kind":"a"},{"kind":"b"}])"}) {
      const Response response = post("/v1/jobs", body);
      expect_problem(response, row.status, row.name, "no");
      EXPECT_EQ(!response.fields.empty() && response.fields[0].first == "Retry-After", row.come_again) << row.name;
    }
  }
  router_ = nullptr;
}

TEST_F(EnqueueRoute, WhatMayHaveBeenWrittenIsToldItemByItem) {
  SlowBroker broken(store_->broker());
  Api api({.broker = std::shared_ptr<Broker>(std::shared_ptr<void>(), &broken), .inspector = &store_->inspector()});
  router_ = std::make_unique<Router>(api.routes());
  broken.refuses = Error{ErrorCode::kUnconfirmed, "the answer was lost"};
  const Response one = post("/v1/jobs", R"({"kind":"a"})");
  expect_problem(one, 504, "unconfirmed", "the answer was lost");
  EXPECT_TRUE(one.fields.empty());
  const Response many = post("/v1/jobs", R"([{"kind":"a"},{"kind":"b"}])");
  EXPECT_EQ(many.status, 200);
  const auto results = wire::read_batch_results(many.body);
  ASSERT_TRUE(results && results->size() == 2) << many.body;
  for (const auto& result : *results) EXPECT_EQ(result.error().code, ErrorCode::kUnconfirmed);
  router_ = nullptr;
}

TEST(IdempotencyKey, StandsForOneIdOfVersion8) {
  std::set<JobId> ids;
  for (const std::string_view caller : {"a", "b", ""}) {
    for (const std::string_view key : {"k", "l", "a\nk"}) {
      for (std::size_t i = 0; i < 3; ++i) {
        const JobId id = id_for_key(caller, key, i);
        EXPECT_EQ(id, id_for_key(caller, key, i));
        EXPECT_EQ(id.to_string()[14], '8');
        ids.insert(id);
      }
    }
  }
  EXPECT_EQ(ids.size(), 27u);
}

TEST_F(EnqueueRoute, TheTraceOfTheRequestGoesOnWithItsJobs) {
  const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto headers_of = [&](const std::string& body, Fields fields) {
    const Response made = post("/v1/jobs", body, std::move(fields));
    return field_of(get("/v1/jobs/" + field_of(made.body, "id")).body, "headers");
  };
  EXPECT_EQ(headers_of(R"({"kind":"a"})", {{"traceparent", parent}, {"tracestate", "vendor=1"}}),
            R"({"traceparent":")" + parent + R"(","tracestate":"vendor=1"})");
  EXPECT_EQ(headers_of(R"({"kind":"a","headers":{"traceparent":"mine"}})", {{"traceparent", parent}}), R"({"traceparent":"mine"})");
  for (const std::string& wrong : {std::string("00-1"), std::string(55, '0'), "ff" + parent.substr(2), parent + "x",
                                   "00-" + std::string(32, '0') + parent.substr(35)}) {
    EXPECT_EQ(headers_of(R"({"kind":"a"})", {{"traceparent", wrong}}), "{}") << wrong;
  }
}

}  // namespace
}  // namespace bide::server
