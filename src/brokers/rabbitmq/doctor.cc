#include "brokers/rabbitmq/doctor.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "brokers/rabbitmq/drift.h"
#include "brokers/rabbitmq/found_queues.h"
#include "brokers/rabbitmq/lost_set.h"
#include "brokers/rabbitmq/probe.h"
#include "brokers/rabbitmq/version_facts.h"
#include "core/duration.h"

namespace bide::brokers::rabbitmq {

namespace {

using Weight = Finding::Weight;

constexpr ChannelNumber kLooking = 1;
constexpr ChannelNumber kGetting = 2;
constexpr std::array kNeeded = {"publisher_confirms", "basic.nack", "consumer_cancel_notify", "connection.blocked",
                                "exchange_exchange_bindings"};

std::string text_of(const FieldTable& table, std::string_view name) {
  const Field* field = find_field(table, name);
  return field != nullptr && field->text() != nullptr ? *field->text() : "";
}

class ServerCheck {
 public:
  ServerCheck(const Settings& settings, const DoctorOptions& options, Connection& connection)
      : settings_(settings),
        options_(options),
        names_(settings.prefix),
        connection_(connection),
        examiner_(connection, kLooking) {}

  Result<std::vector<Finding>> run() {
    server();
    url();
    if (Status status = alarm(); !status) return status.error();
    if (Status status = wanted(); !status) return status.error();
    if (Status status = delays(); !status) return status.error();
    if (Status status = lost(); !status) return status.error();
    questions();
    return std::move(findings_);
  }

 private:
  void add(Weight weight, const char* check, std::string about, std::string text, std::string remedy = {}) {
    findings_.push_back({weight, check, std::move(about), std::move(text), std::move(remedy)});
  }

  void server();
  void url();
  Status alarm();
  Status wanted();
  Status delays();
  Status lost();
  void questions();
  void compare(const std::string& name, const Examined& examined);
  void fill(const std::string& name, const QueueCounts& counts);

  const Settings& settings_;
  const DoctorOptions& options_;
  const Names names_;
  Connection& connection_;
  Examiner examiner_;
  std::vector<Finding> findings_;
  ServerVersion version_;
  bool blocked_ = false;
  bool lost_is_there_ = true;
  std::set<std::string> compared_;
};

void ServerCheck::server() {
  const FieldTable& properties = connection_.server_properties();
  const std::string product = text_of(properties, "product");
  const std::string version = text_of(properties, "version");
  const std::string what = product + " " + version + ", cluster " + text_of(properties, "cluster_name");
  version_ = ServerVersion::of(properties);
  if (product != "RabbitMQ") {
    add(Weight::kWarning, "version", "", what + ": bide knows RabbitMQ only");
  } else if (version_ < ServerVersion{3, 10}) {
    add(Weight::kProblem, "version", "",
        what + ": quorum queues have neither a time to live nor at-least-once dead-lettering before 3.10",
        "upgrade the server");
  } else {
    add(Weight::kFine, "version", "", what);
  }
  for (std::string& consequence : consequences_of(version_)) add(Weight::kFine, "version", "", std::move(consequence));
  const Field* capabilities = find_field(properties, "capabilities");
  for (const char* name : kNeeded) {
    const Field* field = capabilities != nullptr && capabilities->table() != nullptr
                             ? find_field(*capabilities->table(), name)
                             : nullptr;
    if (field != nullptr && field->value == Field(true).value) continue;
    add(Weight::kProblem, "capabilities", "", "the server does not offer " + std::string(name));
  }
}

void ServerCheck::url() {
  if (settings_.queue_type == QueueType::kClassic) {
    add(Weight::kWarning, "queue_type", "",
        "queue_type=classic: when a node dies, confirmed jobs that are being passed on are lost",
        "leave queue_type out of the URL, so that queues are quorum queues");
  }
}

Status ServerCheck::alarm() {
  const Result<std::optional<std::string>> why = why_blocked(settings_, options_.patience);
  if (!why) return why.error();
  blocked_ = why->has_value();
  if (blocked_) {
    add(Weight::kProblem, "alarm", "", "the server takes no messages: " + **why,
        "see `rabbitmq-diagnostics alarms`: memory or disk are short");
  } else {
    add(Weight::kFine, "alarm", "", "the server takes messages and confirms them");
  }
  return {};
}

void ServerCheck::compare(const std::string& name, const Examined& examined) {
  if (examined.presence == Presence::kUnknown) {
    add(Weight::kWarning, "arguments", name, "it cannot be compared: " + examined.words,
        "give the user the right to configure it, or ask as another user");
    return;
  }
  if (examined.presence == Presence::kSame) {
    for (const Difference& difference : examined.differences) {
      add(Weight::kWarning, "arguments", name, describe(difference), remedy_for(difference));
    }
  }
  if (examined.presence != Presence::kDiffers) return;
  if (examined.differences.empty()) {
    add(Weight::kProblem, "arguments", name, "it is not as wanted: " + examined.words);
    return;
  }
  for (const Difference& difference : examined.differences) {
    add(Weight::kProblem, "arguments", name, describe(difference), remedy_for(difference));
  }
}

void ServerCheck::fill(const std::string& name, const QueueCounts& counts) {
  if (settings_.max_length == 0 || counts.messages < settings_.max_length / 5 * 4) return;
  add(counts.messages >= settings_.max_length ? Weight::kProblem : Weight::kWarning, "full", name,
      std::to_string(counts.messages) + " jobs wait, of at most " + std::to_string(settings_.max_length) +
          "; more are refused",
      "more workers, or a greater max_length");
}

Status ServerCheck::wanted() {
  Deployment deployment = options_.deployment;
  Result<std::set<std::string>> announced = announced_queues(settings_);
  if (!announced) return announced.error();
  for (const std::string& queue : deployment.queues) announced->erase(queue);
  deployment.queues.insert(deployment.queues.end(), announced->begin(), announced->end());

  const Result<Plan> plan = make_plan(examiner_, topology_of(settings_, deployment));
  if (!plan) return plan.error();
  std::size_t missing = 0;
  std::string first;
  const auto note_missing = [&](const std::string& name) {
    if (name == names_.lost()) lost_is_there_ = false;
    if (missing++ == 0) first = name;
  };
  for (const PlannedExchange& exchange : plan->exchanges) {
    if (exchange.examined.presence == Presence::kMissing) note_missing(exchange.spec.name);
    compare(exchange.spec.name, exchange.examined);
  }
  for (const PlannedQueue& queue : plan->queues) {
    compared_.insert(queue.spec.name);
    if (queue.examined.presence == Presence::kMissing) note_missing(queue.spec.name);
    compare(queue.spec.name, queue.examined);
  }
  for (const std::string& queue : deployment.queues) {
    const auto found = std::find_if(plan->queues.begin(), plan->queues.end(),
                                    [&](const PlannedQueue& each) { return each.spec.name == names_.queue(queue); });
    if (found != plan->queues.end() && found->examined.presence != Presence::kMissing) {
      fill(found->spec.name, found->examined.counts);
    }
  }
  const std::string count = std::to_string(plan->exchanges.size() + plan->queues.size() - missing) + " of " +
                            std::to_string(plan->exchanges.size() + plan->queues.size());
  if (missing == 0) {
    add(Weight::kFine, "declared", "", count + " exchanges and queues are there");
  } else {
    add(settings_.declare ? Weight::kWarning : Weight::kProblem, "declared", first,
        count + " exchanges and queues are there; " + std::to_string(missing) + " are missing, the first is " + first +
            (settings_.declare ? "; each is declared when it is first needed" : "; declare=no: nobody declares them"),
        "bide rabbitmq apply");
  }
  return {};
}

// A delay queue that is not passing on what is due looks empty over AMQP: what has expired is not counted. So a message
// is sent through it.
Status ServerCheck::delays() {
  const Result<std::vector<FoundDelayQueue>> found = find_delay_queues(settings_, examiner_);
  if (!found) return found.error();
  std::vector<DelayProbe> probes;
  std::uint64_t waiting = 0;
  for (const FoundDelayQueue& queue : *found) {
    const std::string& name = queue.spec.name;
    waiting += queue.counts.messages;
    if (queue.counts.consumers > 0) {
      add(Weight::kProblem, "consumers", name,
          "somebody consumes from a delay queue and takes jobs before they are due", "stop that consumer");
    }
    bool fits = true;
    if (compared_.insert(name).second) {
      const Result<Examined> examined = examiner_.queue(queue.spec);
      if (!examined) return examined.error();
      compare(name, *examined);
      fits = examined->presence == Presence::kSame;
    }
    // Behind a fan of laps the probe would begin a lap of its own.
    if (fits && queue.counts.messages == 0 && queue.lap <= 1) probes.push_back({name, queue.next});
  }
  if (!found->empty() && !lost_is_there_) {
    add(Weight::kProblem, "lost", names_.lost(),
        "it is not there: 32 messages without a way out freeze a delay queue for everybody", "bide rabbitmq apply");
  }
  if (blocked_) return {};
  const Result<std::vector<bool>> passed = pass_through(settings_, probes, options_.patience);
  if (!passed) {
    if (!connection_.alive() || passed.error().code == ErrorCode::kUnavailable) return passed.error();
    add(Weight::kWarning, "passing", "",
        "no message could be sent through the delay queues: " + passed.error().message);
    return {};
  }
  std::size_t stuck = 0;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if ((*passed)[i]) continue;
    ++stuck;
    add(Weight::kProblem, "passing", probes[i].queue,
        "a message sent through it did not come out: it is blocked by messages whose destination is gone or full, or "
        "its server has just been restarted",
        "look for full queues and for missing exchanges; after a restart wait for the confirm timeout (see below)");
  }
  if (stuck == 0) {
    add(Weight::kFine, "passing", "",
        std::to_string(found->size()) + " delay queues, " + std::to_string(waiting) + " jobs wait in them; " +
            std::to_string(probes.size()) + " that are empty were tried and pass messages on");
  }
  return {};
}

Status ServerCheck::lost() {
  const Result<std::optional<QueueCounts>> counts = examiner_.look_at(names_.lost());
  if (!counts) return counts.error();
  if (!*counts) return {};
  if ((*counts)->messages == 0) {
    add(Weight::kFine, "lost", names_.lost(), "no message has lost its way");
    return {};
  }
  const Result<std::string> example = first_lost(connection_, kGetting, names_);
  if (!example) return example.error();
  add(Weight::kProblem, "lost", names_.lost(),
      std::to_string((*counts)->messages) + " messages had no way to go" +
          (example->empty() ? "" : ", the first: " + *example),
      "`bide rabbitmq lost` shows them; declare what is missing (bide rabbitmq apply), then `bide rabbitmq "
      "lost-requeue`");
  return {};
}

void ServerCheck::questions() {
  const Milliseconds timeout = options_.consumer_timeout.value_or(kUsualConsumerTimeout);
  const Milliseconds limit = options_.time_limit.value_or(Job{}.time_limit);
  const bool too_long = limit >= timeout;
  const std::string figures =
      "time limit " + core::format_duration(limit) +
      (options_.time_limit ? "" : " (a job's usual one; --time-limit names another)") + ", consumer timeout " +
      core::format_duration(timeout) +
      (options_.consumer_timeout ? "" : " (the server's usual one; --consumer-timeout names another)");
  if (too_long) {
    const bool known = options_.time_limit || options_.consumer_timeout;
    add(known ? Weight::kProblem : Weight::kAsk, "consumer_timeout", "",
        figures + ": an attempt that takes so long loses its lease, because the server closes the channel",
        "consumer_timeout in rabbitmq.conf above the longest time limit of any job");
  } else {
    add(Weight::kFine, "consumer_timeout", "", figures);
  }
  if (settings_.queue_type == QueueType::kQuorum) {
    add(Weight::kAsk, "confirm_timeout", "",
        "after a restart of a node, delays may stand still for 180 s, the usual confirm timeout of the server's "
        "dead-letter workers; it cannot be read over AMQP",
        "[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 3000}]}]. in advanced.config");
    if (!facts_of(version_).forgets_new_queues) {
      add(Weight::kAsk, "feature_flag", "",
          "queues that are new are safe from the death of a node by the feature flag track_qq_members_uids; feature "
          "flags cannot be seen over AMQP",
          "rabbitmqctl enable_feature_flag all");
    }
    if (!settings_.notices && version_ < ServerVersion{3, 12}) {
      add(Weight::kAsk, "feature_flag", "", "at-least-once dead-lettering needs the feature flag stream_queue",
          "rabbitmqctl enable_feature_flag stream_queue");
    }
  }
  if (facts_of(version_).has_partition_handling) {
    add(Weight::kAsk, "partitions", "",
        "on several nodes, cluster_partition_handling must let a minority stop; it cannot be read over AMQP",
        "cluster_partition_handling = pause_minority in rabbitmq.conf");
  }
  add(Weight::kAsk, "policies", "",
      "policies cannot be seen over AMQP: one that matches " + settings_.prefix +
          ".* with expires, message-ttl, max-length, overflow or ha-mode would lose or delay jobs" +
          (version_ < ServerVersion{4, 0} ? "; RabbitMQ 4 has no mirroring (ha-mode)" : ""),
      "rabbitmqctl list_policies");
}

}  // namespace

Result<std::vector<Finding>> examine_server(const Settings& settings, const DoctorOptions& options) {
  Result<std::unique_ptr<Connection>> connection = Connection::open(settings, "doctor", 0, ConnectionUse::kReading);
  if (!connection) return connection.error();
  return ServerCheck(settings, options, **connection).run();
}

}  // namespace bide::brokers::rabbitmq
