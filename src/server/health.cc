#include "server/health.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "metrics/exposition.h"
#include "wire/json_writer.h"

namespace bide::server {
namespace {

using Queues = std::shared_ptr<const std::vector<QueueInfo>>;

constexpr std::int64_t kPatienceUs = 5'000'000;
constexpr std::size_t kMostWaiting = 64;

std::string_view name_of(Pressure::Level level) {
  switch (level) {
    case Pressure::Level::kOk:
      return "ok";
    case Pressure::Level::kHigh:
      return "high";
    case Pressure::Level::kBlocked:
      return "blocked";
  }
  return "unknown";
}

struct Readiness {
  bool ready = true;
  std::string_view code = "ok";  // Stable: "ok", "draining", "blocked", "unreachable".
  std::string detail = {};       // Only for those who may read: it can name paths and hosts.
};

}  // namespace

// Asks the broker for its queues. Whoever asks while that is under way gets the same answer; when it takes too long,
// everybody who waits, and everybody who comes until it is there, is told so.
class Health::Probe : public std::enable_shared_from_this<Probe> {
 public:
  using Answer = Completion<Queues>;

  Probe(std::shared_ptr<Inspector> inspector, platform::Clock& clock)
      : inspector_(std::move(inspector)), clock_(clock) {}

  void ask(Answer answer) {
    const std::int64_t now_us = clock_.now().elapsed_us;
    std::vector<Answer> given_up;
    std::int64_t waited_us = 0;
    {
      std::lock_guard lock(mutex_);
      if (under_way_ && (now_us - begun_us_ >= kPatienceUs || waiting_.size() >= kMostWaiting)) {
        waited_us = now_us - begun_us_;
        given_up = std::exchange(waiting_, {});
        given_up.push_back(std::move(answer));
      } else {
        waiting_.push_back(std::move(answer));
        if (under_way_) return;
        under_way_ = true;
        begun_us_ = now_us;
      }
    }
    if (!given_up.empty()) {
      const std::string waited = std::to_string(waited_us / 1'000'000);
      for (const Answer& each : given_up) {
        each(Error{ErrorCode::kUnavailable, "the broker has not answered for " + waited + " s"});
      }
      return;
    }
    inspector_->queues([self = shared_from_this()](Result<std::vector<QueueInfo>> queues) {
      self->tell(queues ? Result<Queues>(std::make_shared<const std::vector<QueueInfo>>(std::move(*queues)))
                        : Result<Queues>(queues.error()));
    });
  }

 private:
  void tell(const Result<Queues>& result) {
    std::vector<Answer> waiting;
    {
      std::lock_guard lock(mutex_);
      waiting = std::exchange(waiting_, {});
      under_way_ = false;
    }
    for (const Answer& each : waiting) each(result);
  }

  const std::shared_ptr<Inspector> inspector_;
  platform::Clock& clock_;

  std::mutex mutex_;  // Guards everything below.
  std::vector<Answer> waiting_;
  bool under_way_ = false;
  std::int64_t begun_us_ = 0;
};

std::string weaker_durability(std::string_view broker_url) {
  constexpr std::string_view kSetting = "durability=";
  for (std::size_t at = broker_url.find_first_of("?&"); at != std::string_view::npos;
       at = broker_url.find('&', at + 1)) {
    const std::string_view rest = broker_url.substr(at + 1);
    if (!rest.starts_with(kSetting)) continue;
    const std::string_view mode = rest.substr(kSetting.size(), rest.find('&') - kSetting.size());
    if (mode != "fsync") return std::string(mode);
  }
  return {};
}

std::shared_ptr<Health> Health::make(HealthOptions options) {
  return std::shared_ptr<Health>(new Health(std::move(options)));
}

Health::Health(HealthOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : platform::real_clock()),
      probe_(options_.inspector && options_.broker->capabilities().inspect
                 ? std::make_shared<Probe>(options_.inspector, clock_)
                 : nullptr) {}

Health::~Health() = default;

void Health::set_draining() { draining_ = true; }

Routes Health::routes() {
  const std::shared_ptr<Health> self = shared_from_this();
  return {
      {.method = Method::kGet,
       .pattern = "/metrics",
       .scope = Scope::kRead,
       .summary = "Counters and gauges, for Prometheus",
       .answer = [self](const Request&, Reply reply) { self->answer_metrics(std::move(reply)); }},
      {.method = Method::kGet,
       .pattern = "/healthz",
       .scope = Scope::kNone,
       .summary = "The server answers",
       .answer = [self](const Request& request, Reply reply) { self->answer_alive(request, std::move(reply)); }},
      {.method = Method::kGet,
       .pattern = "/readyz",
       .scope = Scope::kNone,
       .summary = "The server can take work",
       .answer = [self](const Request& request, Reply reply) { self->answer_ready(request, std::move(reply)); }},
  };
}

void Health::answer_metrics(Reply reply) {
  // Shared, because a completion is copied.
  const auto to = std::make_shared<Reply>(std::move(reply));
  using Outbox = std::optional<metrics::OutboxFigures>;
  const auto write = [self = shared_from_this(), to](const Result<Queues>& queues, const Outbox& outbox) {
    metrics::Exposition text;
    self->options_.metrics->write(text);
    if (queues && *queues) {
      self->options_.metrics->write_queues(text, **queues, Time(Milliseconds(self->clock_.now().wall_us / 1000)));
    }
    self->options_.metrics->write_pressure(text, self->options_.broker->pressure());
    if (outbox) metrics::Metrics::write_outbox(text, *outbox);
    metrics::Metrics::write_build(text, self->options_.version);
    to->send({.status = 200, .content_type = std::string(metrics::kExpositionContentType), .body = text.take()});
  };
  // What was counted is told also when the broker is away: that is when it is wanted most.
  const auto ask_queues = [self = shared_from_this(), write](const Outbox& outbox) {
    if (!self->probe_) return write(Queues(), outbox);
    self->probe_->ask([write, outbox](const Result<Queues>& queues) { write(queues, outbox); });
  };
  // The outbox first: it is gone before the broker behind it.
  if (options_.ask_outbox)
    options_.ask_outbox(ask_queues);
  else
    ask_queues(std::nullopt);
}

void Health::answer_alive(const Request& request, Reply reply) const {
  std::string body;
  wire::JsonWriter json(body);
  json.begin_object().field("status", "ok");
  if (request.caller.may(Scope::kRead)) json.field("version", options_.version);
  if (!options_.durability.empty()) json.field("durability", options_.durability);
  json.end_object();
  reply.send({.status = 200, .content_type = "application/json", .body = std::move(body)});
}

void Health::answer_ready(const Request& request, Reply reply) {
  const auto to = std::make_shared<Reply>(std::move(reply));
  const auto finish = [self = shared_from_this(), to,
                       details = request.caller.may(Scope::kRead)](const Result<Queues>& queues) {
    const Pressure pressure = self->options_.broker->pressure();
    Readiness is;
    if (self->draining_) {
      is = {false, "draining", "the server is shutting down"};
    } else if (!queues) {
      is = {false, "unreachable", queues.error().message};
    } else if (pressure.level == Pressure::Level::kBlocked) {
      is = {false, "blocked", pressure.reason};
    }
    std::string body;
    wire::JsonWriter json(body);
    json.begin_object().field("ready", is.ready).field("code", is.code).field("pressure", name_of(pressure.level));
    if (details && !is.detail.empty()) json.field("detail", is.detail);
    if (!self->options_.durability.empty()) json.field("durability", self->options_.durability);
    json.end_object();
    to->send({.status = is.ready ? 200 : 503, .content_type = "application/json", .body = std::move(body)});
  };
  if (probe_ && !draining_)
    probe_->ask(finish);
  else
    finish(Queues());
}

}  // namespace bide::server
