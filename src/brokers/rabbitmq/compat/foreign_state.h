// What the thread of ForeignConsumer knows. Used by its sources only:
//
//   foreign_consumer.cc   the thread, its connection and its timers
//   foreign_sources.cc    subscriptions, their queues, and the way from a delivery to a lease
//   foreign_settle.cc     from a lease to an acknowledgement

#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "brokers/rabbitmq/backoff.h"
#include "brokers/rabbitmq/compat/foreign_consumer.h"
#include "brokers/rabbitmq/compat/foreign_topology.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/letterbox.h"
#include "brokers/rabbitmq/stamps.h"
#include "core/job_ids.h"
#include "platform/keyed_hash.h"
#include "platform/random.h"

namespace bide::brokers::rabbitmq::compat {

using Steady = std::chrono::steady_clock::time_point;

inline constexpr ChannelNumber kDeclaring = 1;  // And the one behind it.
inline constexpr ChannelNumber kFirstSource = 3;

struct Source;
struct Subscriber;

// A delivered message that has not left its queue yet.
struct Parcel {
  std::shared_ptr<Source> source;
  std::uint64_t serial = 0;  // Of the source's channel: another one means that the server has taken it back.
  std::uint64_t tag = 0;
  ForeignJob job;
};

// One queue of one subscription: a channel and a consumer on it.
struct Source {
  std::shared_ptr<Subscriber> owner;
  std::string queue;
  int weight = 1;
  ChannelNumber channel = 0;
  bool open = false;  // The channel.
  std::string tag;    // Of the consumer; empty: none.
  int prefetch = 0;   // Of that consumer.
  std::uint64_t serial = 0;
  std::size_t unsettled = 0;  // Delivered on this channel and still there.
  std::deque<Parcel> buffer;
  double served = 0;  // By weight: the source with the least is next.
  Backoff backoff;
  Steady next_try = {};
};

struct Subscriber {
  SubscribeOptions options;
  LeaseSink sink;
  int credit = 0;
  int out = 0;  // Leases unsettled.
  std::optional<std::uint64_t> delivery_limit;  // Takes the place of the credit.
  std::uint64_t delivered = 0;                  // Leases since it began.
  bool ended = false;
  std::vector<std::shared_ptr<Source>> sources;
  std::vector<Lease> granted;           // In this round.
  std::function<void(Status)> started;  // Waits for the first try to consume.

  int credit_now() const {
    if (!delivery_limit) return credit;
    const std::uint64_t left = *delivery_limit > delivered ? *delivery_limit - delivered : 0;
    return out + static_cast<int>(std::min<std::uint64_t>(left, 1'000'000));
  }
};

// A lease that is out.
struct Held {
  enum class State : std::uint8_t { kOut, kSettling };
  Parcel parcel;
  std::shared_ptr<Subscriber> owner;
  std::uint64_t token = 0;
  Steady lease_until = {};
  Steady limit_until = {};
  State state = State::kOut;
  std::size_t outcome = 0;        // While it is being settled: which kind.
  std::vector<JobId> effect_ids;  // The same when it is settled again.
  std::vector<std::function<void(Status)>> also_waiting;
};

struct Timer {
  Steady when;
  std::function<void()> run;
  bool operator<(const Timer& other) const { return when > other.when; }  // The earliest on top.
};

struct Deadline {
  Steady when;
  JobId id;
  std::uint64_t token = 0;
  bool operator<(const Deadline& other) const { return when > other.when; }  // The earliest on top.
};

// What becomes of the original once everything is confirmed.
enum class Ending : std::uint8_t { kAcknowledge, kReject, kGiveBack };

struct ForeignConsumer::State : std::enable_shared_from_this<ForeignConsumer::State> {
  State(const Settings& given, const Dialect& meaning, Publisher& publishes)
      : settings(given), dialect(meaning), publisher(publishes), topology(given, kDeclaring) {}

  const Settings settings;
  const Dialect& dialect;
  Publisher& publisher;
  Letterbox letters;

  // ---- The thread's own.
  ForeignTopology topology;
  std::unique_ptr<Connection> connection;
  Backoff backoff;
  std::size_t next_host = 0;
  Steady next_connect = {};
  bool wanted = false;  // Somebody has asked for something that needs a connection.
  bool stopping = false;
  std::string trouble = "not connected yet";
  std::priority_queue<Timer> timers;
  std::priority_queue<Deadline> deadlines;
  platform::SystemRandom random;
  core::JobIdSource ids;
  Stamps stamps;

  std::vector<std::shared_ptr<Subscriber>> subscribers;
  std::map<ChannelNumber, std::shared_ptr<Source>> sources;
  std::uint64_t last_serial = 0;
  platform::KeyedMap<JobId, Held> held;
  // What was settled a short while ago: tokens, and kinds of outcomes.
  platform::KeyedMap<JobId, std::pair<std::uint64_t, std::size_t>> settled;
  std::deque<JobId> settled_order;
  std::size_t replacing = 0;  // Unreadable messages whose way to the dead is being confirmed.

  std::thread thread;
  std::atomic<std::thread::id> thread_id = {};

  // foreign_consumer.cc
  void run();
  void step();
  void connect();
  Status reach_server();
  void lose(const Error& error);
  void take_events();
  void take_event(Event event);
  Steady run_timers();
  void after(Milliseconds wait, std::function<void()> task);
  void hand_out();
  void shut_down();
  bool on_thread() const { return std::this_thread::get_id() == thread_id.load(); }
  Time now() const;
  JobId new_id() { return ids.next(now().time_since_epoch().count(), random.next()); }

  // foreign_sources.cc
  void add(std::shared_ptr<Subscriber> subscriber);
  void end(const std::shared_ptr<Subscriber>& subscriber);
  void set_credit(const std::shared_ptr<Subscriber>& subscriber, int credit);
  void set_delivery_limit(const std::shared_ptr<Subscriber>& subscriber, std::uint64_t deliveries);
  int wanted_prefetch(const Source& source) const;
  void tend_sources();
  void start(const std::shared_ptr<Source>& source);
  void stop(const std::shared_ptr<Source>& source);
  void close_when_empty(const std::shared_ptr<Source>& source);
  void lose_channel(std::shared_ptr<Source> source);  // By value: the caller's may be the one in `sources`.
  void take_delivery(Delivery delivery);
  void put_aside(Parcel parcel, Send send);
  void choose();
  void grant(Parcel parcel);
  bool valid(const Parcel& parcel) const { return parcel.source->open && parcel.serial == parcel.source->serial; }

  // foreign_settle.cc
  void settle(Settlement settlement, std::function<void(Status)> answer);
  Result<std::vector<Publication>> plan(Held& entry, Settlement& settlement, Ending& ending);
  void finish(JobId id, std::uint64_t token, Ending ending, Milliseconds wait, Status status,
              const std::function<void(Status)>& answer);
  void publish_all(std::vector<Publication> publications, std::function<void(Status)> done);
  // False when the connection was lost over it.
  bool leave(const Parcel& parcel, Ending ending);
  bool extend(const LeaseRef& lease);
  void watch(const JobId& id, const Held& entry);
  void expire_leases();
  void end_attempt(const JobId& id, std::uint64_t token, Outcome outcome);
  void release(platform::KeyedMap<JobId, Held>::iterator entry);
  Status lost_or_settled(const Settlement& settlement) const;
};

}  // namespace bide::brokers::rabbitmq::compat
