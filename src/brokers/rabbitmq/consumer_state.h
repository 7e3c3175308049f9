// What the consumer's thread knows. Used by the sources of Consumer only:
//
//   consumer.cc          the thread, its connection and its timers
//   consumer_sources.cc  subscriptions, their queues, and the way from a delivery to a lease
//   consumer_settle.cc   from a lease to an acknowledgement
//   consumer_notices.cc  the notice board: reading it up, keeping it up to date

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "brokers/rabbitmq/ack_book.h"
#include "brokers/rabbitmq/backoff.h"
#include "brokers/rabbitmq/channel_consumers.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/consumer.h"
#include "brokers/rabbitmq/declared.h"
#include "brokers/rabbitmq/job_message.h"
#include "brokers/rabbitmq/letterbox.h"
#include "brokers/rabbitmq/publications.h"
#include "core/job_ids.h"
#include "platform/keyed_hash.h"
#include "platform/random.h"

namespace bide::brokers::rabbitmq {

using Steady = std::chrono::steady_clock::time_point;

inline constexpr ChannelNumber kNewsChannel = 1;    // The private queue of notices.
inline constexpr ChannelNumber kMemoryChannel = 2;  // The stream of notices, while it is read up.
inline constexpr ChannelNumber kDeclaringChannel = 3;
inline constexpr ChannelNumber kFirstSource = 4;

struct Source;
struct Subscriber;

// A delivered message that is not acknowledged yet.
struct Parcel {
  std::shared_ptr<Source> source;
  std::uint64_t serial = 0;  // Of the source's channel: another one means that the server has taken it back.
  std::uint64_t tag = 0;
  std::size_t consumer = 0;  // Of the channel's.
  JobMessage message;
  std::uint32_t deliveries = 0;  // Before this one, without an acknowledgement.
  bool waited = false;           // For a word about how those ended.
};

// One queue of one subscription: a channel and a consumer on it.
struct Source {
  std::shared_ptr<Subscriber> owner;
  std::string queue;
  int weight = 1;
  ChannelNumber channel = 0;
  bool open = false;     // The channel.
  bool astray = false;   // A message may be out that was never seen, until the channel is closed.
  ChannelConsumers consumers;
  int extra = 0;      // Lent by queues that have nothing.
  int stalled = 0;    // Deliveries whose replacement the server does not take. They use up the prefetch ...
  int room = 0;       // ... so there is room for them beyond the share, and others get past them.
  std::uint64_t serial = 0;
  std::deque<Parcel> buffer;
  AckBook acks;
  Steady last_ack = {};
  double served = 0;  // By weight: the source with the least is next.
  Backoff backoff;
  Steady next_try = {};
};

struct Subscriber {
  SubscribeOptions options;
  LeaseSink sink;
  int credit = 0;
  int out = 0;     // Leases unsettled, and parcels on the way to become one.
  int leased = 0;   // Leases unsettled.
  int stalled = 0;  // Of these, settled by their worker, and the server does not take what is published for that.
  std::optional<std::uint64_t> delivery_limit;  // Takes the place of the credit.
  std::uint64_t delivered = 0;                  // Leases since it began.
  bool ended = false;
  Steady starved_since = {};  // Has had credit to spare since then.
  std::vector<std::shared_ptr<Source>> sources;
  std::vector<Lease> granted;  // In this round.
  // Waits for the first try to consume.
  std::function<void(Status)> started;

  int credit_now() const {
    if (!delivery_limit) return credit;
    const std::uint64_t left = *delivery_limit > delivered ? *delivery_limit - delivered : 0;
    return leased + static_cast<int>(std::min<std::uint64_t>(left, 1'000'000));
  }
  bool wants_more() const { return out - (delivery_limit ? 0 : stalled) < credit_now(); }
};

// Something that is published in the place of a delivery, from then until the answer.
struct Replacement {
  std::shared_ptr<Source> source;
  std::shared_ptr<Subscriber> owner;  // Of the lease; null: none is out.
  std::size_t bytes = 0;
  Steady stalled_from = {};
  bool stalled = false;
  bool over = false;
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
  std::size_t outcome = 0;  // While it is being settled: which kind.
  std::shared_ptr<Replacement> replacement;
  bool last_chance = false;
  std::vector<std::pair<JobId, std::int64_t>> effects;  // Ids and stamps: the same when it is settled again.
  std::vector<std::function<void(Status)>> waiting;  // For the end of settling.
  std::vector<Parcel> twins;  // The same job, delivered a second time.
};

// What was settled here a short while ago, or is about to be.
struct Settled {
  std::uint64_t token = 0;     // 0: another lease has been granted since.
  std::size_t outcome = 0;     // Its kind.
  std::int64_t published = 0;  // Copies up to this one are over.
  std::int64_t original = 0;   // The place of this copy was to be taken ...
  std::int64_t copy = 0;       // ... by one with this stamp, which perhaps was written.
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

struct Consumer::State : std::enable_shared_from_this<Consumer::State> {
  State(const Settings& given, Publisher& publishes, Stamps& stamp_source,
        std::function<void(const std::string&)> finds_lost);

  const Settings settings;
  const Names names;
  Publisher& publisher;
  Stamps& stamps;
  const std::function<void(const std::string&)> find_lost;
  Letterbox letters;

  // ---- The thread's own.
  std::unique_ptr<Connection> connection;
  Declared declared;
  Backoff backoff;
  std::size_t next_host = 0;
  Steady next_connect = {};
  bool wanted = false;  // Somebody has asked for something that needs a connection.
  bool stopping = false;
  std::string trouble;  // Why there is no connection.
  std::priority_queue<Timer> timers;
  platform::SystemRandom random;
  core::JobIdSource ids;

  std::vector<std::shared_ptr<Subscriber>> subscribers;
  std::map<ChannelNumber, std::shared_ptr<Source>> sources;
  std::uint64_t last_serial = 0;

  platform::KeyedMap<JobId, Held> held;
  std::priority_queue<Deadline> deadlines;
  int last_chances = 0;
  platform::KeyedMap<JobId, Settled> settled;
  std::deque<JobId> settled_order;
  std::size_t replacing = 0;                         // Parcels whose replacement is being published.
  std::deque<std::shared_ptr<Replacement>> recent;   // Replacements that may still be taken in time.
  int stalled = 0;
  std::size_t stalled_bytes = 0;
  platform::KeyedMap<JobId, std::int64_t> replaced;  // The same by id: copies up to this one are about to be over.
  std::vector<std::function<void(Status)>> answers;  // Once the acknowledgements are written.

  NoticeBoard board;
  bool caught_up = false;
  std::string private_queue;
  std::string marker;
  std::int64_t next_offset = -1;  // Of the stream; -1: from the beginning.
  std::uint64_t memory_unacked = 0;
  bool memory_open = false;
  Steady last_memory = {};
  Steady reading_since = {};
  bool asking = false;  // A get is under way.
  Steady last_asked = {};
  std::deque<std::pair<Steady, Parcel>> doubtful;                          // Looked at again then.
  std::vector<Parcel> to_check;                                            // Chosen; to be checked by the next get.
  std::vector<Parcel> checking;                                            // Chosen before the get under way.
  std::vector<std::function<void(Result<const NoticeBoard*>)>> questions;  // Answered by the next get ...
  std::vector<std::function<void(Result<const NoticeBoard*>)>> asked;      // ... or by the one under way.

  std::thread thread;
  std::thread::id thread_id;
  mutable std::mutex stats_mutex;
  Stats stats;

  // consumer.cc
  void run();
  void step();
  void connect();
  void lose(const Error& error);
  void take_events();
  void take_event(Event event);
  Steady run_timers();
  void await_acks();
  void after(Milliseconds wait, std::function<void()> run);
  void flush_acks();
  void hand_out();
  void shut_down();
  bool on_thread() const { return std::this_thread::get_id() == thread_id; }
  Time now() const;
  template <std::uint64_t Stats::*field>
  void count(std::uint64_t by = 1) {
    std::lock_guard lock(stats_mutex);
    stats.*field += by;
  }

  // consumer_sources.cc
  void add(std::shared_ptr<Subscriber> subscriber);
  void end(const std::shared_ptr<Subscriber>& subscriber);
  void set_credit(const std::shared_ptr<Subscriber>& subscriber, int credit);
  void set_delivery_limit(const std::shared_ptr<Subscriber>& subscriber, std::uint64_t deliveries);
  void tend_sources();
  void start(const std::shared_ptr<Source>& source);
  void consume_less(const std::shared_ptr<Source>& source, int by);
  void stop(const std::shared_ptr<Source>& source);
  bool cancel(const std::shared_ptr<Source>& source, const std::string& tag);
  void look_for_lost(const std::string& queue);
  void close_when_empty(const std::shared_ptr<Source>& source);
  void lose_channel(std::shared_ptr<Source> source);  // By value: the caller's may be the one in `sources`.
  int wanted_prefetch(const Source& source) const;
  static void make_room(Source& source);
  void lend();
  void take_delivery(Delivery delivery);
  void choose();
  void judge(Parcel parcel);
  // How often an attempt of this message ended without an outcome: with its process, and with its connection only.
  struct Ends {
    std::uint32_t crashed = 0;
    std::uint32_t lost = 0;
  };
  Ends ends_of(const Parcel& parcel) const;
  void grant(Parcel parcel);
  bool valid(const Parcel& parcel) const { return parcel.source->open && parcel.serial == parcel.source->serial; }

  // consumer_settle.cc
  void settle(Settlement settlement, std::function<void(Status)> answer);
  void finish(JobId id, std::uint64_t token, std::int64_t over, Status status);
  void answer_settled();
  void publish_all(std::vector<Publication> publications, std::function<void(Status)> done);
  Extended extend(const LeaseRef& lease);
  void watch_lease(const JobId& id, std::uint64_t token, Steady until);
  void expire_leases();
  std::shared_ptr<Replacement> begin_replacement(const Parcel& parcel, std::shared_ptr<Subscriber> owner);
  void end_replacement(Replacement& replacement);
  void find_stalled();
  void count_stalled(const Replacement& replacement, int by);
  void end_attempt(platform::KeyedMap<JobId, Held>::iterator found, Fault fault);
  void acknowledge(const Parcel& parcel);
  void reject(const Parcel& parcel);
  void replace(Parcel parcel, Publication publication);
  void replace_later(std::shared_ptr<std::pair<Parcel, Publication>> both);
  void bury(Parcel parcel, DeadReason reason);
  void put_back(Parcel parcel, Milliseconds wait, std::optional<Time> due);
  Publication to_ready(JobMessage message, Milliseconds wait);
  Publication to_dead(JobMessage message, DeadReason reason);
  Settled& memory_of(const JobId& id);
  void remember(const JobId& id, std::int64_t published);
  void remember(const JobId& id, const Held& entry, std::int64_t published);
  bool is_over(const JobId& id, std::int64_t published) const;
  std::int64_t stamp_of_copy(const JobMessage& message);
  std::int64_t last_copy_of(const JobMessage& message) const;
  void release(platform::KeyedMap<JobId, Held>::iterator entry);
  Status lost_or_unknown(const LeaseRef& lease, const Outcome& outcome) const;

  // consumer_notices.cc
  Status start_reading();
  void take_memory(const Delivery& delivery);
  void take_news(const Delivery& delivery);
  void apply(const Notice& notice);
  void write(std::vector<Notice> notices);
  Status read_memory();
  void memory_is_closed();
  void write_marker();
  void watch_silence(const std::string& written);
  void finish_reading();
  void ask_if_needed();
  void news_are_read();
  void spare_what_was_out(const Source* only = nullptr);
  void look_at_doubtful();
};

}  // namespace bide::brokers::rabbitmq
