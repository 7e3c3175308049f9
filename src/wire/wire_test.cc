// Batches, leases, settlements and what inspectors tell: written and read back.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/time_text.h"
#include "core/utf8.h"
#include "wire/batch_json.h"
#include "wire/change_json.h"
#include "wire/filter_query.h"
#include "wire/info_json.h"
#include "wire/lease_json.h"
#include "wire/settle_json.h"

namespace bide::wire {
namespace {

using core::is_utf8;
using namespace std::chrono_literals;

const Time kNow = core::parse_time("2026-01-01T00:00:00Z").value();
const JobId kId = JobId::parse("018f3c1e-7d5a-7000-8000-000000000001").value();

TEST(JsonWriter, TimesAndIdsAreWrittenAsCoreWritesThem) {
  std::int64_t ms = -1'000'000'000'000;
  for (int i = 0; i < 20'000; ++i) {
    // Many within one second, then far away.
    ms += i % 10 == 0 ? 13'700'000'123 * (i % 7 + 1) : 317;
    const Time time{Milliseconds(ms)};
    std::string text;
    JsonWriter(text).begin_object().field("t", time).end_object();
    ASSERT_EQ(text, "{\"t\":\"" + core::format_time(time) + "\"}");
  }
  EXPECT_GT(ms, 0);
  std::string text;
  JsonWriter(text).begin_object().field("id", kId).field("n", 5).end_object();
  EXPECT_EQ(text, "{\"id\":\"" + kId.to_string() + "\",\"n\":5}");
}

TEST(JsonWriter, EveryByteIsWrittenTheSameWhereverItStands) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    std::string alone;
    JsonWriter(alone).string(std::string(1, c));
    const std::string escaped = alone.substr(1, alone.size() - 2);
    EXPECT_EQ(is_utf8(std::string(1, c)), byte < 0x80) << byte;
    for (std::size_t at = 0; at < 20; ++at) {
      std::string text = std::string(at, 'a') + c + std::string(20 - at, 'z');
      std::string written;
      JsonWriter(written).string(text);
      EXPECT_EQ(written, '"' + std::string(at, 'a') + escaped + std::string(20 - at, 'z') + '"')
          << byte << " at " << at;
      EXPECT_EQ(is_utf8(text), byte < 0x80) << byte << " at " << at;
    }
  }
}

std::string string_json(std::string_view text) {
  std::string out;
  JsonWriter(out).string(text);
  return out;
}

TEST(JsonWriter, ControlsAreEscapedSoThatAStringStaysOneLineAndSparesTheTerminal) {
  EXPECT_EQ(string_json("plain"), R"("plain")");
  EXPECT_EQ(string_json("a\"b\\c\nd\te\x01\x7f"), R"("a\"b\\c\nd\te\u0001\u007f")");
  EXPECT_EQ(string_json(std::string_view("a\0b", 3)), R"("a\u0000b")");
  EXPECT_EQ(string_json("a\xc2\x80\xc2\x9f\xc2\xa0"), "\"a\\u0080\\u009f\xc2\xa0\"");
}

TEST(JsonWriter, Utf8StaysAndAnythingElseIsReplaced) {
  EXPECT_EQ(string_json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\"");
  EXPECT_EQ(string_json("a\xff"), "\"a\xef\xbf\xbd\"");
  EXPECT_TRUE(is_utf8("h\xc3\xa9llo"));
  for (const char* bad :
       {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bad)) << string_json(bad);
  }
}

TEST(JsonWriter, NumbersAreShortAndNeverInfinite) {
  const auto number_json = [](double number) {
    std::string out;
    JsonWriter(out).number(number);
    return out;
  };
  EXPECT_EQ(number_json(0.5), "0.5");
  EXPECT_EQ(number_json(0.0001), "0.0001");
  EXPECT_EQ(number_json(0), "0");
  EXPECT_EQ(number_json(100'000), "100000");
  EXPECT_EQ(number_json(1e300), "1e+300");
  EXPECT_EQ(number_json(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(number_json(std::numeric_limits<double>::quiet_NaN()), "null");
}

TEST(BatchJson, OneBadItemSparesTheOthers) {
  const std::string body =
      R"([{"kind":"a"},{"kind":5},{"qeue":"x"},[1,{"x":[]}],{"kind":"b","due":"2020-01-01T00:00:00Z"}])";
  Batch batch;
  ASSERT_FALSE(read_batch(body, kNow, batch));
  EXPECT_FALSE(batch.one);
  ASSERT_EQ(batch.items.size(), 5u);
  EXPECT_FALSE(batch.items[0].problem);
  EXPECT_EQ(batch.items[0].text, R"({"kind":"a"})");
  EXPECT_EQ(batch.items[1].problem->code, "wrong_type");
  EXPECT_EQ(batch.items[1].text, R"({"kind":5})");
  EXPECT_EQ(batch.items[2].problem->code, "unknown_field");
  EXPECT_EQ(batch.items[3].problem->code, "expected_object");
  EXPECT_FALSE(batch.items[4].problem);
  EXPECT_EQ(batch.items[4].job.kind, "b");
  EXPECT_EQ(batch.items[4].warnings.size(), 1u);
}

TEST(BatchJson, DamagedJsonSpoilsTheWhole) {
  for (const std::string body : {R"([{"kind":"a"},{"kind":5)", R"([{"kind":"a"},{"kind":5 "x"}])",
                                 R"([{"kind":"a"}] x)", R"({"kind":"a"} x)", R"({"jobs":[{"kind":"a"}}])"}) {
    Batch batch;
    const auto problem = read_batch(body, kNow, batch);
    ASSERT_TRUE(problem) << body;
    EXPECT_EQ(problem->code, "invalid_json") << body;
    EXPECT_TRUE(problem->offset);
  }
  Batch batch;
  EXPECT_EQ(read_batch(" \n", kNow, batch)->code, "empty_body");
  EXPECT_EQ(read_batch(R"({"jobs":5})", kNow, batch)->code, "wrong_type");
  EXPECT_EQ(read_batch(R"({"jobs":[],"x":1})", kNow, batch)->code, "unknown_field");
  Batch five;
  EXPECT_FALSE(read_batch("5", kNow, five));
  EXPECT_EQ(five.items[0].problem->code, "expected_object");
}

TEST(BatchJson, LinesAreJudgedOneByOne) {
  const std::string body = "{\"kind\":\"a\"}\n\n{\"kind\":\n{\"kind\":\"b\"}\r\n";
  Batch batch;
  ASSERT_FALSE(read_ndjson_batch(body, kNow, batch));
  ASSERT_EQ(batch.items.size(), 3u);
  EXPECT_FALSE(batch.items[0].problem);
  EXPECT_EQ(batch.items[1].problem->code, "invalid_json");
  EXPECT_EQ(batch.items[1].problem->offset, 22u);
  EXPECT_EQ(batch.items[2].job.kind, "b");
}

TEST(BatchJson, ResultsReadBack) {
  Batch batch;
  batch.items.resize(3);
  std::vector<BatchResult> results(3);
  results[0].enqueued = {.id = kId, .existed = true};
  results[1].problem = problem_of(Error{ErrorCode::kOverloaded, "too much"});
  results[2].problem = make_problem("missing_field", "kind is missing", "kind");
  const auto read = read_batch_results(batch_results_json(batch, results));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ((*read)[0]->id, kId);
  EXPECT_TRUE((*read)[0]->existed);
  EXPECT_EQ((*read)[1].error().code, ErrorCode::kOverloaded);
  EXPECT_EQ((*read)[2].error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ((*read)[2].error().message, "kind is missing");
}

TEST(LeaseJson, LeasesReadBack) {
  Lease lease;
  lease.job = Job{.id = kId, .kind = "a", .queue = "q", .body = "{\"x\":1}", .content_type = "application/json"};
  lease.job.headers = {{"a", "b"}};
  lease.job.retry = RetryPolicy::fixed(3s, 9);
  lease.token = 18'446'744'073'709'551'615u;
  lease.attempt = 4;
  lease.due = kNow;
  lease.age = 7ms;
  lease.counts = {.failed = 1, .timed_out = 2, .lost = 3, .crashed = 4};
  lease.history = {{.attempt = 3, .at = kNow, .fault = Fault::kLost, .text = "bad \xff"}};
  const auto read = read_leases(leases_json({lease, lease}, 5ms));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  const Lease& back = (*read)[1];
  EXPECT_EQ(back.job.id, kId);
  EXPECT_EQ(back.job.body, lease.job.body);
  EXPECT_EQ(back.job.content_type, lease.job.content_type);
  EXPECT_EQ(back.job.headers, lease.job.headers);
  EXPECT_EQ(back.job.retry, lease.job.retry);
  EXPECT_EQ(back.token, lease.token);
  EXPECT_EQ(back.attempt, 4u);
  EXPECT_EQ(back.due, kNow);
  EXPECT_EQ(back.age, 12ms);
  EXPECT_EQ(back.counts, lease.counts);
  EXPECT_EQ(back.history, lease.history);
}

TEST(LeaseJson, ARequestIsReadStrictly) {
  LeaseRequest request;
  EXPECT_FALSE(read_lease_request("", request));
  EXPECT_EQ(request.queues[0].name, "default");
  EXPECT_FALSE(read_lease_request(
      R"({"queues":["a",{"name":"b","weight":3}],"max":10,"wait":"30s","lease_ms":5000,"worker":"w","kinds":["b.*","a","b.*"]})", request));
  ASSERT_EQ(request.queues.size(), 2u);
  EXPECT_EQ(request.queues[1].weight, 3);
  EXPECT_EQ(request.max, 10);
  EXPECT_EQ(request.wait, 30s);
  EXPECT_EQ(request.lease, 5s);
  EXPECT_EQ(request.worker, "w");
  EXPECT_EQ(request.kinds, (std::vector<std::string>{"a", "b.*"}));
  const auto again = request;
  EXPECT_FALSE(read_lease_request(lease_request_json(again), request));
  EXPECT_EQ(request.queues[1].name, "b");
  EXPECT_EQ(request.lease, 5s);
  EXPECT_EQ(request.kinds, again.kinds);

  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"{", "invalid_json"},
      {"[]", "expected_object"},
      {R"({"queus":[]})", "unknown_field"},
      {R"({"queues":[]})", "missing_field"},
      {R"({"queues":["a b"]})", "invalid_queue_name"},
      {R"({"queues":["a","a"]})", "invalid_argument"},
      {R"({"queues":["a"],"queue":"b"})", "conflicting_fields"},
      {R"({"queues":"a"})", "wrong_type"},
      {R"({"queues":[5]})", "wrong_type"},
      {R"({"queues":[{"name":"a","weight":0}]})", "out_of_range"},
      {R"({"max":0})", "out_of_range"},
      {R"({"max":-1})", "out_of_range"},
      {R"({"max":5000})", "out_of_range"},
      {R"({"max":"abc"})", "wrong_type"},
      {R"({"max":1,"max":2})", "duplicate_field"},
      {R"({"wait":30})", "invalid_duration"},
      {R"({"wait":"1h"})", "invalid_duration"},
      {R"({"wait":"1s","wait_ms":5})", "conflicting_fields"},
      {R"({"lease":"1ms"})", "invalid_duration"},
      {R"({"lease":"100d"})", "invalid_duration"},
      {R"({"kinds":"a"})", "wrong_type"},
      {R"({"kinds":["a b"]})", "invalid_kind_name"},
  };
  for (const auto& [body, code] : wrong) {
    const auto problem = read_lease_request(body, request);
    ASSERT_TRUE(problem) << body;
    EXPECT_EQ(problem->code, code) << body << ": " << problem->detail;
  }
}

TEST(LeaseJson, ExtensionsReadBack) {
  const std::vector<LeaseRef> refs = {{kId, 7}, {kId, 8}};
  std::vector<Extension> read;
  ASSERT_FALSE(read_extend_request(extend_request_json({{refs[0], std::nullopt}, {refs[1], Progress{0.5, "half"}}}), read));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_FALSE(read[0].progress);
  EXPECT_EQ(read[1].lease.token, 8u);
  EXPECT_EQ(read[1].progress, (Progress{0.5, "half"}));
  const auto answers = read_extended(extended_json(refs, {{.lost = true}, {.cancel_requested = true}}));
  ASSERT_TRUE(answers);
  EXPECT_TRUE((*answers)[0].lost);
  EXPECT_TRUE((*answers)[1].cancel_requested);
  for (const std::string body :
       {R"({})", R"({"leases":[{"id":"x","token":"1"}]})", R"({"leases":[{"token":"1"}]})", R"({"leases":5})",
        R"({"leases":[{"id":"018f3c1e-7d5a-7000-8000-000000000001","token":"x"}]})", "",
        R"({"leases":[{"id":"018f3c1e-7d5a-7000-8000-000000000001","token":"1","progress":{}}]})",
        R"({"leases":[{"id":"018f3c1e-7d5a-7000-8000-000000000001","token":"1","progress":{"part":1.5}}]})"}) {
    EXPECT_TRUE(read_extend_request(body, read)) << body;
  }
}

TEST(SettleJson, SettlementsReadBack) {
  std::vector<Settlement> all(6);
  for (Settlement& each : all) each.lease = {kId, 5};
  all[0].outcome = Done{.result = "{\"n\":1}", .content_type = "application/json"};
  all[0].effects = {Job{.kind = "next", .body = "x"}, Job{.kind = "other"}};
  all[1].outcome = RetryAt{.after = 5s, .fault = Fault::kTimedOut, .error = "late \xff", .body = "new"};
  all[2].outcome = Dead{.reason = DeadReason::kExhausted, .fault = Fault::kTimedOut, .error = "no"};
  all[3].outcome = Returned{.after = 3ms, .note = "stopping"};
  all[4].outcome = Done{};
  all[5].outcome = Done{.result = "plain", .content_type = ""};
  SettleRequest request;
  const auto problem = read_settle_request(settle_request_json(all), kNow, request);
  ASSERT_FALSE(problem) << problem->detail;
  EXPECT_FALSE(request.one);
  const std::vector<SettleItem>& items = request.items;
  ASSERT_EQ(items.size(), 6u);
  for (const SettleItem& item : items) {
    EXPECT_FALSE(item.problem) << item.problem->detail;
    EXPECT_FALSE(item.by_policy);
    EXPECT_EQ(item.settlement.lease.token, 5u);
  }
  EXPECT_EQ(std::get<Done>(items[0].settlement.outcome).result, "{\"n\":1}");
  EXPECT_EQ(std::get<Done>(items[0].settlement.outcome).content_type, "application/json");
  ASSERT_EQ(items[0].settlement.effects.size(), 2u);
  EXPECT_EQ(items[0].settlement.effects[0].body, "x");
  const auto& again = std::get<RetryAt>(items[1].settlement.outcome);
  EXPECT_EQ(again.after, 5s);
  EXPECT_EQ(again.fault, Fault::kTimedOut);
  EXPECT_EQ(again.error, "late \xff");
  EXPECT_EQ(again.body, "new");
  const auto& dead = std::get<Dead>(items[2].settlement.outcome);
  EXPECT_EQ(dead.reason, DeadReason::kExhausted);
  EXPECT_EQ(dead.fault, Fault::kTimedOut);
  EXPECT_EQ(std::get<Returned>(items[3].settlement.outcome).note, "stopping");
  EXPECT_EQ(std::get<Done>(items[5].settlement.outcome).result, "plain");
  EXPECT_EQ(std::get<Done>(items[5].settlement.outcome).content_type, "");

  request.items[1].problem = problem_of(Error{ErrorCode::kLeaseLost, "gone"});
  const auto statuses = read_settled(settled_json(request));
  ASSERT_TRUE(statuses);
  EXPECT_TRUE((*statuses)[0]);
  EXPECT_EQ((*statuses)[1].error().code, ErrorCode::kLeaseLost);
}

TEST(SettleJson, OneBadItemSparesTheOthers) {
  const std::string start = R"({"id":"018f3c1e-7d5a-7000-8000-000000000001","token":"5",)";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"("outcome":"dona"})", "invalid_outcome"},
      {R"("result":1})", "missing_field"},
      {R"("outcome":"retry"})", "missing_field"},
      {R"("outcome":"done","error":"x"})", "conflicting_fields"},
      {R"("outcome":"done","result":1,"result_text":"x"})", "conflicting_fields"},
      {R"("outcome":"retry","after":5})", "invalid_duration"},
      {R"("outcome":"retry","after":"40000d"})", "too_far"},
      {R"("outcome":"dead","reason":"tired"})", "invalid_argument"},
      {R"("outcome":"done","effects":[{"kid":"x"}]})", "unknown_field"},
      {R"("outcome":"done","effects":[{}]})", "missing_field"},
      {R"("outcome":"done","outcome":"done"})", "duplicate_field"},
      {R"("outcome":5})", "wrong_type"},
  };
  std::string body = "{\"settlements\":[";
  for (const auto& [text, code] : wrong) body += start + text + ",";
  body += start + R"("outcome":"failed","error":"x"}]})";
  SettleRequest request;
  const auto problem = read_settle_request(body, kNow, request);
  ASSERT_FALSE(problem) << problem->detail;
  const std::vector<SettleItem>& items = request.items;
  ASSERT_EQ(items.size(), wrong.size() + 1);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    ASSERT_TRUE(items[i].problem) << wrong[i].first;
    EXPECT_EQ(items[i].problem->code, wrong[i].second) << wrong[i].first << ": " << items[i].problem->detail;
  }
  EXPECT_FALSE(items.back().problem);
  EXPECT_TRUE(items.back().by_policy);
  SettleRequest one;
  EXPECT_FALSE(read_settle_request(start + R"("outcome":"done"})", kNow, one));
  EXPECT_TRUE(one.one);
  EXPECT_EQ(settled_json(one), R"({"id":"018f3c1e-7d5a-7000-8000-000000000001","token":"5","status":200})");
  for (const std::string wrong_body :
       {R"({"settlements":5})", R"({"settlements":[],"x":1})", "", "[", R"({"settlements":[}]})"}) {
    SettleRequest other;
    EXPECT_TRUE(read_settle_request(wrong_body, kNow, other)) << wrong_body;
  }
}

TEST(InfoJson, AJobsInformationReadsBack) {
  JobInfo info;
  info.job = Job{.id = kId, .kind = "a", .queue = "q", .body = "\xff", .unique_key = "u"};
  info.state = JobState::kDead;
  info.due = kNow;
  info.attempts = 3;
  info.counts.failed = 3;
  info.history = {{.attempt = 3, .at = kNow, .fault = Fault::kFailed, .text = "no"}};
  info.finished = kNow + 1s;
  info.dead_reason = DeadReason::kPoison;
  info.worker = "w";
  info.note = "n";
  const auto page = read_job_page(job_page_json({.jobs = {info, info}, .next = "abc"}));
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->next, "abc");
  const JobInfo& back = page->jobs.at(1);
  EXPECT_EQ(back.job.id, kId);
  EXPECT_EQ(back.job.body, "\xff");
  EXPECT_EQ(back.job.unique_key, "u");
  EXPECT_EQ(back.state, JobState::kDead);
  EXPECT_EQ(back.due, kNow);
  EXPECT_EQ(back.attempts, 3u);
  EXPECT_EQ(back.counts, info.counts);
  EXPECT_EQ(back.history, info.history);
  EXPECT_EQ(back.finished, info.finished);
  EXPECT_EQ(back.dead_reason, info.dead_reason);
  EXPECT_EQ(back.worker, "w");
  EXPECT_EQ(back.note, "n");

  JobInfo done;
  done.job = Job{.id = kId, .kind = "a", .queue = "q"};
  done.state = JobState::kDone;
  done.result = "[1]";
  done.result_content_type = "application/json";
  const auto finished = read_job_info(job_info_json(done));
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(finished->result, "[1]");
  EXPECT_EQ(finished->result_content_type, "application/json");
  done.job.body = "what was asked";
  done.job.priority = 7;
  EXPECT_EQ(read_job_info(job_info_json(done))->job.body, "");
  done.whole = true;
  const auto whole = read_job_info(job_info_json(done));
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE(whole->whole);
  EXPECT_EQ(whole->job.body, "what was asked");
  EXPECT_EQ(whole->job.priority, 7);
  EXPECT_FALSE(read_job_info("{\"state\":\"odd\"}"));
  EXPECT_FALSE(read_job_info("<html>"));
}

TEST(InfoJson, TheRestReadsBack) {
  const auto queues =
      read_queues(queues_json({{.name = "q", .paused = true, .ready = 5, .oldest_ready = kNow, .workers = 2}}));
  ASSERT_TRUE(queues);
  EXPECT_TRUE((*queues)[0].paused);
  EXPECT_EQ((*queues)[0].ready, 5u);
  EXPECT_EQ((*queues)[0].oldest_ready, kNow);
  EXPECT_EQ((*queues)[0].workers, 2);
  EXPECT_EQ(read_explanation(explanation_json({"paused", "It waits."}))->text, "It waits.");
  const auto audit = read_audit(audit_json({.accepted = 9, .live = 1, .details = {{"a\"b", 3}}, .problems = {"p"}}));
  ASSERT_TRUE(audit);
  EXPECT_EQ(audit->details.at("a\"b"), 3u);
  EXPECT_FALSE(audit->ok());
  EXPECT_EQ(read_pressure(pressure_json({Pressure::Level::kHigh, "x", 5ms}))->retry_after, 5ms);
  Capabilities capabilities;
  capabilities.cancel = false;
  capabilities.why_not = "because";
  const auto read = read_capabilities(capabilities_json(capabilities));
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->cancel);
  EXPECT_TRUE(read->inspect);
  EXPECT_EQ(read->why_not, "because");
  EXPECT_EQ(read_count(count_json("removed", 7), "removed").value(), 7u);
  const auto results =
      read_id_results(id_results_json({kId, kId}, {Status(), Status(Error{ErrorCode::kNotFound, "no"})}));
  ASSERT_TRUE(results);
  EXPECT_TRUE((*results)[0]);
  EXPECT_EQ((*results)[1].error().code, ErrorCode::kNotFound);
}

TEST(Problem, EveryErrorCodeComesBack) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kUnsupported); ++code) {
    const Error error{static_cast<ErrorCode>(code), "text"};
    const Problem problem = problem_of(error);
    const Problem read = read_problem(problem_json(problem), problem.status);
    EXPECT_EQ(error_of(read).code, error.code) << problem.code;
    EXPECT_EQ(error_of(read).message, "text");
    EXPECT_GE(problem.status, 400);
  }
  EXPECT_EQ(error_of(read_problem("<html>Bad gateway</html>", 502)).code, ErrorCode::kUnconfirmed);
  EXPECT_EQ(error_of(read_problem("<html>No server</html>", 503)).code, ErrorCode::kUnavailable);
  EXPECT_EQ(error_of(read_problem("", 500)).code, ErrorCode::kUnconfirmed);
  EXPECT_EQ(error_of(read_problem("", 401)).code, ErrorCode::kPermissionDenied);
}

TEST(Problem, EveryCodeOfCoreIsInTheTable) {
  for (const std::string_view code :
       {"missing_field", "invalid_kind_name", "invalid_queue_name", "too_far", "invalid_duration", "conflicting_fields",
        "invalid_header", "headers_too_large", "invalid_unique_key", "invalid_content_type", "invalid_priority",
        "invalid_retry", "invalid_group", "invalid_predecessor", "too_many_predecessors", "invalid_past"}) {
    EXPECT_EQ(make_problem(code, "").status, 422) << code;
  }
}

TEST(FilterQuery, IsReadStrictly) {
  ListRequest request;
  ASSERT_FALSE(read_list_query(
      {{"state", "ready,dead"}, {"queue", "q"}, {"group", "g"}, {"since", "2026-01-01T00:00:00Z"}, {"limit", "7"}, {"cursor", "c"}},
      request));
  EXPECT_EQ(request.filter.states, (std::vector<JobState>{JobState::kReady, JobState::kDead}));
  EXPECT_EQ(request.limit, 7u);
  EXPECT_EQ(list_query(request), "limit=7&state=ready,dead&queue=q&group=g&since=2026-01-01T00%3A00%3A00.000Z&cursor=c");
  for (const char* limit : {"0", "-1", "abc", "1001", "", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(read_list_query({{"limit", limit}}, request)->code, "invalid_limit") << limit;
  }
  EXPECT_EQ(read_list_query({{"stat", "ready"}}, request)->code, "unknown_parameter");
  EXPECT_EQ(read_list_query({{"header.", "x"}}, request)->code, "unknown_parameter");
  EXPECT_EQ(read_list_query({{"flow", "x"}}, request)->code, "invalid_parameter");
  EXPECT_EQ(read_list_query({{"state", "raedy"}}, request)->status, 400);
  EXPECT_EQ(read_list_query({{"since", "yesterday"}}, request)->status, 400);
}

TEST(FilterQuery, KnowsGroupsFlowsAndHeaders) {
  ListRequest request;
  ASSERT_FALSE(read_list_query({{"group", "tenant:42"},
                                {"flow", kId.to_string()},
                                {"header.tenant", "acme & co"},
                                {"header.x y", ""},
                                {"state", "waiting"}},
                               request));
  EXPECT_EQ(request.filter.group, "tenant:42");
  EXPECT_EQ(request.filter.flow, kId);
  EXPECT_EQ(request.filter.headers, (Headers{{"tenant", "acme & co"}, {"x y", ""}}));
  EXPECT_EQ(request.filter.states, std::vector{JobState::kWaiting});
  EXPECT_EQ(list_query(request), "limit=50&state=waiting&group=tenant%3A42&flow=" + kId.to_string() +
                                     "&header.tenant=acme%20%26%20co&header.x%20y=");
  ChangeRequest change;
  ASSERT_FALSE(read_cancel(R"({"filter":{"headers":{"tenant":"acme"},"flow":")" + kId.to_string() + R"(","group":"g"}})", change));
  EXPECT_EQ(change.choice.filter->headers, (Headers{{"tenant", "acme"}}));
  EXPECT_EQ(change.choice.filter->flow, kId);
  EXPECT_EQ(change.choice.filter->group, "g");
}

TEST(ChangeJson, ChoicesAreReadStrictly) {
  ChangeRequest request;
  ASSERT_FALSE(read_replay(replay_json({kId}, {.keep_attempts = true, .delay = 5s}), request));
  EXPECT_EQ(request.choice.ids, std::vector<JobId>{kId});
  EXPECT_TRUE(request.replay.keep_attempts);
  EXPECT_EQ(request.replay.delay, 5s);
  request = {};
  ASSERT_FALSE(read_replay(R"({"filter":{"queue":"q","error":"x"},"limit":5})", request));
  EXPECT_EQ(request.choice.filter->queue, "q");
  EXPECT_EQ(request.choice.limit, 5u);
  for (const std::string body :
       {"", "{}", R"({"ids":[],"filter":{}})", R"({"filter":{"quue":"x"}})", R"({"ids":["x"]})",
        R"({"limit":0,"filter":{}})", R"({"ids":[],"delay":"5s","delay_ms":1})", R"({"filter":{},"delay":"40000d"})"}) {
    ChangeRequest other;
    EXPECT_TRUE(read_replay(body, other)) << body;
  }
}

}  // namespace
}  // namespace bide::wire
