// SharedClient: a broker and an inspector through the owner of a data directory in another process. One thread.
//
// When the owner ends, the client connects to the next one, which may be this process. Calls without an answer are sent
// again where that is safe: those that the owner has not begun, and those that are idempotent. The others complete with
// kUnconfirmed, or with kUnavailable when they were not sent. Subscriptions are made again; leases stay valid.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "bide/result.h"
#include "brokers/shared/calls.h"
#include "brokers/shared/frame.h"
#include "brokers/shared/send_queue.h"
#include "brokers/shared/wire.h"
#include "platform/local_socket.h"

namespace bide::brokers::shared {

struct OwnerConnection {
  platform::LocalSocket socket;
  FrameReader incoming;  // May hold more than the handshake.
  Capabilities capabilities;
};

// Connects to the process that owns a data directory, and exchanges the hello frames, for which it waits at most so long.
//
// kUnavailable: nobody answers; there may be an owner who is about to. kNewerVersion: the owner's bide is newer.
// kUnsupported: it is older. kPermissionDenied: it is another user's.
Result<OwnerConnection> connect_to_owner(const std::string& directory, Milliseconds at_most);

// This process has become the owner: here is what to ask from now on.
struct LocalOwner {
  Broker* broker = nullptr;
  Inspector* inspector = nullptr;
};

// One attempt to find the next owner; an error means: try again in a moment.
using FindOwner = std::function<Result<std::variant<OwnerConnection, LocalOwner>>()>;

class SharedClient : public Broker, public Inspector, public std::enable_shared_from_this<SharedClient> {
 public:
  // So long calls wait for an owner to be there.
  static constexpr Milliseconds kPatience{5'000};

  static std::shared_ptr<SharedClient> start(OwnerConnection connected, FindOwner find_owner,
                                             Milliseconds patience = kPatience);
  ~SharedClient() override;

  // Waits for the answers to what was asked, returns the leases that this process holds, and says goodbye. To be called
  // before the end; from then on nothing works any more.
  void close();
  // As if the process were killed: without a goodbye.
  void abort_connection();

  // Broker.
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  void mark_delivered(std::vector<LeaseRef> leases) override;
  void save_body(LeaseRef lease, std::string body, Completion<void> done) override;
  void save_step(LeaseRef lease, Step step, Completion<void> done) override;
  void report_progress(LeaseRef lease, Progress progress) override;
  Pressure pressure() const override;
  Capabilities capabilities() const override;

  // Inspector.
  void queues(Completion<std::vector<QueueInfo>> done) override;
  void find(JobId id, Completion<JobInfo> done) override;
  void list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) override;
  void explain(JobId id, Completion<Explanation> done) override;
  void audit(Completion<AuditReport> done) override;
  GiveUp watch(JobId id, Completion<JobInfo> done) override;
  void cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) override;
  void reschedule(JobId id, Time due, Completion<void> done) override;
  void edit(JobId id, JobEdit edit, Completion<void> done) override;
  void replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) override;
  void pause(std::string queue, bool paused, Completion<void> done) override;
  void purge(std::string queue, Completion<std::uint64_t> done) override;
  void bind(Binding binding, Completion<void> done) override;
  void bindings(Completion<std::vector<Binding>> done) override;
  void put_rules(QueueRules rules, Completion<void> done) override;
  void rules(Completion<std::vector<QueueRules>> done) override;
  void backup(std::string target, Completion<void> done) override;
  void backup_info(Completion<BackupInfo> done) override;
  void put_schedule(Schedule schedule, Completion<PutSchedule> done) override;
  void schedules(Completion<std::vector<ScheduleInfo>> done) override;
  void remove_schedule(std::string name, Completion<void> done) override;
  void pause_schedule(std::string name, bool paused, Completion<void> done) override;
  void run_schedule(std::string name, Completion<JobId> done) override;

  // For calls that go past the client once there is a local owner: leases from before count against the credit of their
  // subscription until their end is seen here.
  Completion<std::vector<Extended>> tracking(const std::vector<LeaseRef>& leases,
                                             Completion<std::vector<Extended>> done);
  Completion<std::vector<Status>> tracking(const std::vector<Settlement>& settlements,
                                           Completion<std::vector<Status>> done);

 private:
  std::optional<Error> find_overload() const;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  class Handle;
  using Handler = std::function<void(Result<std::string_view>)>;  // Given the payload of the answer.

  struct Call {
    FrameType type = FrameType::kAnswer;
    SharedFrame frame;
    Handler handler;
    std::int64_t since_ms = 0;
    bool sent = false;         // Some of it may have reached the owner.
    bool unconfirmed = false;  // An owner that is gone may have done it.
  };
  struct Subscribed {
    SubscribeOptions options;
    std::shared_ptr<const LeaseSink> sink;
    int credit = 0;
    int carried = 0;           // Leases of earlier owners that are held still.
    bool established = false;  // An owner has accepted it.
    bool ended = false;
    std::unique_ptr<Subscription> inner;          // Of the local owner.
    std::optional<std::uint64_t> delivery_limit;  // Takes the place of the credit.
    std::uint64_t arrived = 0;                    // Leases that this subscription had.
    std::uint64_t before_owner = 0;               // Of those, by earlier owners.
    std::uint64_t passed_over = 0;                // Leases of this owner that arrived too late and count for nothing.

    // As the owner counts.
    std::uint64_t limit_at_owner() const {
      const std::uint64_t limit = *delivery_limit + passed_over;
      return limit > before_owner ? limit - before_owner : 0;
    }

    int rest() const { return credit > carried ? credit - carried : 0; }
  };
  // A lease whose end has not been seen here. It ends without a word too, when its time is over.
  struct Held {
    JobId id;
    std::uint64_t subscription = 0;
    bool outlives_process = false;
    std::int64_t lease_ms = 0;
    std::int64_t deadline_ms = 0;
    bool carried = false;    // Given by an earlier owner, and counted by its subscription.
    bool delivered = false;  // As mark_delivered() said; each new owner is told again.
  };
  using HeldLeases = std::unordered_map<std::uint64_t, Held>;  // By token.
  enum class State { kConnected, kReconnecting, kOwner, kClosed };

  SharedClient(OwnerConnection connected, FindOwner find_owner, Milliseconds patience);

  // The number of the call.
  template <class T, class... Args>
  std::uint64_t call(FrameType type, Completion<T> done, const Args&... arguments);
  // One frame, or as many as it takes.
  template <class Item, class R>
  void call_in_pieces(FrameType type, std::vector<Item> items, Completion<std::vector<R>> done);
  template <class Item, class R>
  struct Batch;
  template <class Item, class R>
  void call_next_piece(FrameType type, std::shared_ptr<Batch<Item, R>> batch);
  void submit(FrameType type, std::uint64_t number, std::string frame, Handler handler);
  // Without an answer.
  static void fail(const Call& call, std::string why);
  void execute_at(const LocalOwner& local_owner, std::uint64_t number, const Call& call);
  void give_up_watch(std::uint64_t number);
  void send_one_way(std::string frame);  // With the lock held, while connected: no answer is expected.
  void wake();                           // With the lock held.
  void set_credit(std::uint64_t number, int credit);
  void set_delivery_limit(std::uint64_t number, std::uint64_t deliveries);
  void renew_credit(std::uint64_t number, Subscribed& subscribed);  // With the lock held.
  void unsubscribe(std::uint64_t number);
  void release(const std::vector<std::uint64_t>& tokens);
  void renew(const std::vector<std::uint64_t>& tokens);
  // With the lock held.
  HeldLeases::iterator release(HeldLeases::iterator held);
  void renew(Held& held, std::int64_t since_ms);
  void expire_held(std::int64_t now);
  void check_carried() const;

  // Of the client's thread.
  void run();
  void exchange_frames();
  void close_socket();
  bool receive();
  bool take_frames();
  bool take_frame(const Frame& frame);
  void take_leases(std::uint64_t number, std::int64_t granted_ms, std::vector<Lease> leases);
  void on_owner_lost();
  void reconnect();
  void wait_for_held();
  void join(OwnerConnection connected);
  void become_owner(LocalOwner local_owner);
  void expire_calls(const std::string& why);
  void expire_unanswered();
  void end_calls();

  const FindOwner find_owner_;
  const Milliseconds patience_;
  platform::Waker waker_;
  std::atomic<std::uint64_t> last_number_ = 0;

  // Of the client's thread.
  platform::LocalSocket socket_;
  FrameReader incoming_;
  SendQueue outgoing_;
  bool send_closed_ = false;           // The owner takes nothing any more, though it may have sent something.
  bool goodbye_ = false;               // The owner has said so.
  std::int64_t closing_since_ms_ = 0;  // 0: not yet.
  std::int64_t received_ms_ = 0;       // When the owner last said anything.

  mutable std::mutex mutex_;  // Guards everything below.
  State state_ = State::kConnected;
  bool closing_ = false;
  bool vanishing_ = false;
  bool polling_ = false;
  std::map<std::uint64_t, Call> calls_;      // Not answered yet, in order.
  std::map<std::uint64_t, GiveUp> watches_;  // At the local owner, by call. Empty: being made.
  std::size_t unanswered_bytes_ = 0;
  std::vector<std::pair<std::uint64_t, SharedFrame>> unsent_;  // By call; 0 for what has no answer.
  std::map<std::uint64_t, Subscribed> subscriptions_;
  HeldLeases held_;
  std::int64_t held_check_ms_ = kNever;  // None of them ends before.
  Capabilities capabilities_;
  Pressure pressure_;
  LocalOwner local_owner_;

  std::thread thread_;
};

}  // namespace bide::brokers::shared
