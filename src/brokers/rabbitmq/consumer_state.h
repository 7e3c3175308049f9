// What the consumer's thread knows. Used by the sources of Consumer only:
//
//   consumer.cc             the calls from other threads; the thread and its connection
//   consumer_channels.cc    subscriptions, their channels, and how much the server may deliver on them
//   consumer_deliveries.cc  from a delivery to a lease
//   consumer_settle.cc      from a lease to an acknowledgement
//   consumer_holding.cc     leases that outlast what the server allows a delivery

#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/consumer.h"
#include "brokers/rabbitmq/deliveries.h"
#include "brokers/rabbitmq/dialect.h"
#include "brokers/rabbitmq/notice_log.h"
#include "brokers/rabbitmq/settled_jobs.h"
#include "brokers/rabbitmq/timers.h"
#include "brokers/rabbitmq/unconfirmed_copies.h"
#include "core/job_ids.h"
#include "platform/backoff.h"
#include "platform/random.h"
#include "platform/task_queue.h"

namespace bide::brokers::rabbitmq {

inline constexpr ChannelNumber kFirstSource = Dialect::kDeclaring + 1;
inline constexpr ChannelNumber kLastSource = 1000;  // The server allows twice as many, unless it is told otherwise.

inline Error closed() { return {ErrorCode::kUnavailable, "the broker is closed"}; }

struct Consumer::State {
  State(const Settings& given, Dialect& meaning, Publisher& publishes, Stamps& stamp_source,
        std::function<void(const std::string&)> finds_lost);

  const Settings settings;
  Dialect& dialect;
  Publisher& publisher;
  Stamps& stamps;
  const std::function<void(const std::string&)> find_lost;
  const std::shared_ptr<platform::PollableTaskQueue> tasks = std::make_shared<platform::PollableTaskQueue>();

  // ---- The thread's own.
  std::unique_ptr<Connection> connection;
  platform::Backoff backoff;
  std::size_t next_host = 0;
  Steady next_connect = {};
  bool wanted = false;  // Somebody has asked for something that needs a connection.
  bool stopping = false;
  std::string trouble = "not connected yet";
  Timers timers;
  platform::SystemRandom random;
  core::JobIdSource ids;

  std::vector<std::shared_ptr<Subscriber>> subscribers;
  std::map<ChannelNumber, std::shared_ptr<Source>> sources;
  ChannelNumber last_channel = kLastSource;
  std::uint64_t last_serial = 0;
  std::set<std::string> looks_for_lost;  // With declare=no: queues for which somebody looks now and then.

  Leases leases;
  Milliseconds consumer_timeout;  // The server's, as far as it is known.
  Steady next_holding = {};
  SettledJobs settled;
  UnconfirmedCopies copies;
  std::size_t replacing = 0;                            // Deliveries without a lease whose copy is being published.
  platform::KeyedMap<JobId, std::int64_t> replaced;     // The same by id: copies up to this one are about to be over.
  std::vector<std::function<void(Status)>> answers;     // Once the acknowledgements are written.

  NoticeLog log;
  std::vector<JobDelivery> to_check;                    // Chosen; to be checked by the next read of the notices.
  std::vector<JobDelivery> checking;                    // Chosen before the read under way.
  std::deque<std::pair<Steady, JobDelivery>> doubtful;  // Looked at again then.

  std::thread thread;
  std::thread::id thread_id;
  mutable std::mutex stats_mutex;
  Stats stats;

  // consumer.cc
  void run();
  void step();
  void wait_for_work(Milliseconds longest, bool idle = false);
  void connect();
  void lose(const Error& error);
  void take_events();
  void take_event(Event event);
  Steady run_timers();
  void hand_out();
  void shut_down();
  bool on_thread() const { return std::this_thread::get_id() == thread_id; }
  Time now() const { return wall_now(); }
  template <std::uint64_t Stats::*field>
  void count(std::uint64_t by = 1) {
    std::lock_guard lock(stats_mutex);
    stats.*field += by;
  }

  // consumer_channels.cc
  void add(std::shared_ptr<Subscriber> subscriber);
  void end(const std::shared_ptr<Subscriber>& subscriber);
  void set_limits(Subscriber& subscriber, std::optional<int> credit, std::optional<std::uint64_t> deliveries);
  void tend_sources();
  void start(const std::shared_ptr<Source>& source);
  void fail_to_start(const std::shared_ptr<Source>& source, const Error& error);
  void take_started(const std::shared_ptr<Source>& source);
  void take_closed(const std::shared_ptr<Source>& source, const Error& error);
  Status open_channel(const std::shared_ptr<Source>& source);
  void consume_less(const std::shared_ptr<Source>& source, int by);
  void stop(const std::shared_ptr<Source>& source);
  bool cancel(const std::shared_ptr<Source>& source, const std::string& tag);
  void look_for_lost(const std::string& queue);
  void look_for_lost_again(const std::string& queue);
  void retire(const std::shared_ptr<Source>& source);
  void lose_channel(std::shared_ptr<Source> source);  // By value: the caller's may be the one in `sources`.
  int wanted_prefetch(const Source& source) const;
  void lend();
  void flush_acks();
  Steady close_channels();
  void await_acks();
  bool is_cancelling() const;

  // consumer_deliveries.cc
  void take_delivery(Delivery delivery);
  void choose();
  void check_chosen();
  void judge(JobDelivery delivery);
  void grant(JobDelivery delivery);
  void look_at_doubtful();
  void forget_deliveries(const Source* only);
  void spare_unjudged();
  void write_interrupted(const Source* only);
  // How often an attempt of this message ended without an outcome: with its process, and with its connection only.
  struct Ends {
    std::uint32_t crashed = 0;
    std::uint32_t lost = 0;
  };
  Ends ends_of(const JobDelivery& delivery) const;
  static bool valid(const JobDelivery& delivery) { return delivery.detached || delivery.source->has(delivery); }

  // consumer_holding.cc
  void hold_long_leases();
  void hold(const LeaseRef& lease, HeldLease& held);
  void finish_holding(const LeaseRef& lease, std::int64_t stamp, Steady begun, const Status& status);
  void learn_timeout(const std::string& text);
  Notice notice_of(Notice::Kind kind, const JobId& id, std::int64_t published);

  // consumer_settle.cc
  void settle(Settlement settlement, std::function<void(Status)> answer);
  Result<std::vector<Publication>> publish_effects(HeldLease& lease, std::vector<Job> effects);
  void finish(const LeaseRef& lease, bool ends, const Departure& departure, Status status);
  void publish_all(std::vector<Publication> publications, std::function<void(Status)> done);
  void answer_settled();
  Extended extend(const LeaseRef& lease);
  void expire_leases();
  std::shared_ptr<UnconfirmedCopies::Copy> begin_copy(const JobDelivery& delivery, std::shared_ptr<Subscriber> owner);
  void release(const JobId& id);
  Status lost_or_unknown(const LeaseRef& lease, const Outcome& outcome) const;
  void leave(const JobDelivery& delivery, const Departure& departure);
  void acknowledge(const JobDelivery& delivery) { leave(delivery, {}); }
  // After an outcome that no worker has said. Again and again, until it is done or the server has taken it back.
  void depart(JobDelivery delivery, Outcome outcome);
  void put_back(JobDelivery delivery, Milliseconds wait = Milliseconds(0));
  void replace(JobDelivery delivery, Publication publication, bool ends);
  void replace_later(std::shared_ptr<std::pair<JobDelivery, Publication>> both, bool ends);
  std::int64_t stamp_after(const JobMessage& message, const Outcome& outcome);
};

}  // namespace bide::brokers::rabbitmq
