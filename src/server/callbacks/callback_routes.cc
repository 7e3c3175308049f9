// The routes of CallbackService: looking at deliveries, and replaying one.
//
//   GET /v1/callbacks?limit=100&job=ID&before=DELIVERY
//     {"policy":"allow-list","queues":["callbacks"],"waiting":0,"sending":1,"accepted":0,
//      "deliveries":[{"id":...,"job":...,"kind":...,"queue":...,"attempt":1,"url":"https://host:443/path?***",
//                     "at":...,"took_ms":12,"status":200,"outcome":"done","error":""}],
//      "next":null,
//      "hosts":[{"host":"host:443","breaker":"closed","pause_ms":0,"limit":5,"under_way":1,"waiting":0,"failures":0,
//                "typical_ms":12,"last_error":""}]}
//   Newest delivery first; next is the `before` of the next page; status is null where there was no answer.
//
//   POST /v1/callbacks/{id}/replay
//     {"id":JOB,"how":"replayed"}    it was dead: put back with a fresh budget
//     {"id":JOB,"how":"hastened"}    it waited for its next attempt: due now
//     {"id":JOB,"how":"enqueued"}    it was done, or is gone: a new job with the same body

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/did_you_mean.h"
#include "core/quote.h"
#include "server/callbacks/callback_service.h"
#include "wire/job_json.h"
#include "wire/json_writer.h"
#include "wire/problem.h"
#include "wire/take_values.h"

namespace bide::server {

namespace {

constexpr std::size_t kUsualPage = 100;
constexpr std::size_t kLongestPage = 1'000;
constexpr auto kParameters = std::to_array<std::string_view>({"job", "before", "limit"});

struct Page {
  std::size_t limit = kUsualPage;
  JobId job = {};
  JobId before = {};
};

std::optional<wire::Problem> read_page(const Request& request, Page& page) {
  for (const auto& [name, value] : request.query) {
    if (name == "limit") {
      const auto limit = wire::parse_whole(value);
      if (!limit || *limit < 1 || *limit > static_cast<std::int64_t>(kLongestPage)) {
        return wire::make_problem("invalid_limit",
                                  "invalid limit " + core::quoted(value) + "; allowed: a whole number from 1 to " +
                                      std::to_string(kLongestPage),
                                  name);
      }
      page.limit = static_cast<std::size_t>(*limit);
    } else if (name == "job" || name == "before") {
      const auto id = JobId::parse(value);
      if (!id) return wire::make_problem("invalid_parameter", name + ": " + id.error().message, name);
      (name == "job" ? page.job : page.before) = *id;
    } else {
      return wire::make_problem(
          "unknown_parameter", "unknown parameter " + core::quoted(name) + core::did_you_mean(name, kParameters), name);
    }
  }
  return std::nullopt;
}

void write(wire::JsonWriter& out, const DeliveryRecord& record) {
  out.begin_object().field("id", record.id).field("job", record.job).field("kind", record.kind);
  out.field("queue", record.queue).field("attempt", record.attempt).field("url", record.url).field("at", record.at);
  out.field("took_ms", record.took).name("status");
  record.status == 0 ? out.null() : out.number(record.status);
  out.field("outcome", to_string(record.outcome)).field("error", record.error).end_object();
}

void write(wire::JsonWriter& out, const HostStatus& host) {
  out.begin_object().field("host", host.host).field("breaker", to_string(host.breaker)).field("pause_ms", host.pause);
  out.field("limit", host.limit).field("under_way", host.under_way).field("waiting", host.waiting);
  out.field("failures", host.failures).field("typical_ms", host.latency).field("last_error", host.last_error);
  out.end_object();
}

Response json(std::string body) {
  return {.status = 200, .content_type = std::string(wire::kJsonContentType), .body = std::move(body)};
}

Response callbacks_json(const CallbackOptions& options, const DeliveryStatus& status,
                        const std::vector<DeliveryRecord>& deliveries, std::size_t limit) {
  std::string body;
  wire::JsonWriter out(body);
  out.begin_object().field("policy", to_string(options.policy.mode())).name("queues").begin_array();
  for (const std::string& queue : options.queues) out.string(queue);
  out.end_array().field("waiting", status.waiting).field("sending", status.sending);
  out.field("accepted", status.accepted).name("deliveries").begin_array();
  for (const DeliveryRecord& record : deliveries) write(out, record);
  out.end_array().name("next");
  deliveries.size() < limit ? out.null() : out.string(deliveries.back().id.to_string());
  out.name("hosts").begin_array();
  for (const HostStatus& host : status.hosts) write(out, host);
  out.end_array().end_object();
  return json(std::move(body));
}

// Looks up the job of a delivery, replays it, and answers.
class Replay : public std::enable_shared_from_this<Replay> {
 public:
  Replay(DeliveryRecord record, std::shared_ptr<Broker> broker, std::shared_ptr<Inspector> inspector, Reply reply)
      : record_(std::move(record)),
        broker_(std::move(broker)),
        inspector_(std::move(inspector)),
        reply_(std::move(reply)) {}

  void start() {
    if (!inspector_ || !broker_->capabilities().inspect) return enqueue_again();
    inspector_->find(record_.job, [self = shared_from_this()](Result<JobInfo> info) {
      if (!info && info.error().code != ErrorCode::kNotFound) return self->fail(info.error());
      self->decide(info ? std::optional(info->state) : std::nullopt);
    });
  }

 private:
  void decide(std::optional<JobState> state) {
    if (!state || *state == JobState::kDone) return enqueue_again();
    if (*state == JobState::kDead) {
      return inspector_->replay({record_.job}, {}, [self = shared_from_this()](Result<std::vector<Status>> statuses) {
        self->finish(statuses ? statuses->at(0) : Status(statuses.error()), "replayed");
      });
    }
    if (*state == JobState::kScheduled) {
      const Time now = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
      return inspector_->reschedule(record_.job, now, [self = shared_from_this()](Status status) {
        self->finish(status, "hastened");
      });
    }
    fail({ErrorCode::kWrongState, "job " + record_.job.to_string() + " is " + std::string(to_string(*state)) +
                                      ": it is delivered as soon as there is room"});
  }

  void enqueue_again() {
    if (!record_.whole) {
      return fail({ErrorCode::kWrongState, "job " + record_.job.to_string() +
                                               " is finished, and its body is not kept any more; enqueue it again"});
    }
    Job job = *record_.whole;
    job.id = {};
    job.unique_key.clear();
    job.delay = {};
    job.due.reset();
    job.expires.reset();
    broker_->enqueue({std::move(job)}, [self = shared_from_this()](Result<std::vector<Result<Enqueued>>> results) {
      if (!results) return self->fail(results.error());
      const Result<Enqueued>& enqueued = results->at(0);
      if (!enqueued) return self->fail(enqueued.error());
      self->succeed(enqueued->id, "enqueued");
    });
  }

  void finish(const Status& status, std::string_view how) {
    status ? succeed(record_.job, how) : fail(status.error());
  }
  void succeed(const JobId& id, std::string_view how) {
    std::string body;
    wire::JsonWriter(body).begin_object().field("id", id).field("how", how).end_object();
    reply_.send(json(std::move(body)));
  }
  void fail(const Error& error) { reply_.send(to_response(wire::problem_of(error))); }

  const DeliveryRecord record_;
  const std::shared_ptr<Broker> broker_;
  const std::shared_ptr<Inspector> inspector_;
  Reply reply_;
};

}  // namespace

Routes CallbackService::routes() const {
  Routes routes;
  routes.push_back(
      {.method = Method::kGet,
       .pattern = "/v1/callbacks",
       .scope = Scope::kRead,
       .summary = "The last deliveries of callbacks, and their hosts",
       .answer =
           [options = options_, loop = loop_, log = log_](const Request& request, Reply reply) {
             Page page;
             if (const auto problem = read_page(request, page)) return reply.send(to_response(*problem));
             const auto shared = std::make_shared<Reply>(std::move(reply));
             loop->status([options, log, page, shared](const DeliveryStatus& status) {
               shared->send(callbacks_json(options, status, log->list(page.limit, page.job, page.before), page.limit));
             });
           },
       .operation = {.id = "listCallbacks",
                     .answers = {{200, "Callbacks"}},
                     .query = {kParameters.begin(), kParameters.end()}}});
  routes.push_back(
      {.method = Method::kPost,
       .pattern = "/v1/callbacks/{id}/replay",
       .scope = Scope::kAdmin,
       .summary = "Delivers a callback again",
       .answer =
           [log = log_, broker = broker_, inspector = inspector_](Request request, Reply reply) {
             const auto id = JobId::parse(request.captured["id"]);
             if (!id) return reply.send(to_response(wire::make_problem("invalid_id", id.error().message, "id")));
             auto record = log->find(*id);
             if (!record) {
               return reply.send(to_response(
                   wire::make_problem("not_found", "there is no delivery " + id->to_string() +
                                                       "; only the last ones since the server started are known")));
             }
             std::make_shared<Replay>(std::move(*record), broker, inspector, std::move(reply))->start();
           },
       .operation = {.id = "replayCallback", .answers = {{200, "CallbackReplayed"}}}});
  return routes;
}

}  // namespace bide::server
