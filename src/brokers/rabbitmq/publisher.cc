#include "brokers/rabbitmq/publisher.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "brokers/rabbitmq/backoff.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/declared.h"
#include "brokers/rabbitmq/notices.h"
#include "platform/clock.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr ChannelNumber kPublishing = 1;
constexpr ChannelNumber kDeclaring = 2;
// Confirms are looked at after so many publishes, so that neither side waits for the other.
constexpr int kBurst = 64;
constexpr std::size_t kMostWaiting = 65'536;
constexpr std::size_t kMostBytes = 256 * 1024 * 1024;
constexpr int kMostTries = 4;
constexpr Milliseconds kNotNow{100};

bool is_final(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kPermissionDenied || code == ErrorCode::kUnsupported;
}

struct Entry {
  Publication publication;
  steady_clock::time_point submitted;
  steady_clock::time_point deadline = steady_clock::time_point::max();
  std::size_t bytes = 0;
  int tries = 0;         // Sent and not confirmed because the channel was closed, or returned.
  bool sent = false;       // At least once.
  bool uncertain = false;  // Sent, and the answer was lost: it may have been written.
  bool returned = false;
  bool completed = false;  // The caller has been told.
  bool over = false;       // The server has answered to its tag.
  std::string return_text = {};
};

}  // namespace

struct Publisher::State {
  explicit State(const Settings& given)
      : settings(given),
        names(given.prefix),
        declared(settings, kDeclaring, [this](const std::string& queue) { announce(queue); }) {}

  const Settings settings;
  const Names names;
  platform::Waker waker;

  // ---- The thread's own.
  Declared declared;
  std::unique_ptr<Connection> connection;
  Backoff backoff;
  std::size_t next_host = 0;
  steady_clock::time_point next_connect = {};
  steady_clock::time_point next_send = {};  // After a declaration that was refused for now.
  std::deque<Entry> waiting;    // Not sent, or to be sent again.
  std::deque<Entry> in_flight;  // Sent, in the order of their tags.
  std::uint64_t first_tag = 1;  // Of in_flight.front().

  mutable std::mutex mutex;  // Guards everything below.
  std::vector<Entry> inbox;
  std::vector<Entry> refused;
  std::size_t entries = 0;  // Everywhere.
  std::size_t bytes = 0;
  bool stopping = false;
  std::string trouble;      // Empty: sending. Otherwise why not.
  bool blocked = false;     // The trouble is that the server takes nothing now.
  Stats stats;

  std::thread thread;

  void run();
  bool step();
  void take_inbox();
  void connect();
  Status set_up();
  void lose(const Error& error);
  void reopen_channel(const Error& error);
  bool send_what_can_be_sent();
  Status prepare(Entry& entry, Route& route);
  bool send(Entry entry);
  void take_events();
  void take_confirm(const Confirm& confirm);
  void take_return(ReturnedMessage returned);
  void settle(Entry& entry, bool accepted);
  void complete(Entry& entry, Status status);
  void give_up_late(steady_clock::time_point now);
  void set_trouble(std::string text, bool is_blocked);
  void announce(const std::string& queue);
  std::optional<Milliseconds> longest_wait() const;
};

// ---- From any thread.

Result<std::unique_ptr<Publisher>> Publisher::open(const Settings& settings) {
  auto state = std::make_unique<State>(settings);
  Result<std::unique_ptr<Connection>> connection = Connection::open(settings, "publisher");
  if (!connection) return connection.error();
  state->connection = std::move(*connection);
  if (Status status = state->set_up(); !status) return status.error();
  State* const raw = state.get();
  state->thread = std::thread([raw] { raw->run(); });
  return std::unique_ptr<Publisher>(new Publisher(std::move(state)));
}

Publisher::Publisher(std::unique_ptr<State> state) : state_(std::move(state)) {}

Publisher::~Publisher() { close(); }

void Publisher::close() {
  if (!state_->thread.joinable()) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->waker.wake();
  state_->thread.join();
  // What came too late for the thread.
  state_->take_inbox();
  for (Entry& entry : state_->waiting) state_->complete(entry, Error{ErrorCode::kUnavailable, "the broker is closed"});
  state_->waiting.clear();
}

void Publisher::publish(std::vector<Publication> publications) {
  if (publications.empty()) return;
  const steady_clock::time_point now = steady_clock::now();
  bool wake = false;
  {
    std::lock_guard lock(state_->mutex);
    const bool full = state_->stopping || state_->entries > std::max<std::size_t>(kMostWaiting, 8 * state_->settings.window) ||
                      state_->bytes > kMostBytes;
    wake = state_->refused.empty() && state_->inbox.empty();
    for (Publication& publication : publications) {
      Entry entry;
      entry.bytes = publication.message.body.size() + 512;
      entry.submitted = now;
      const bool taken = !full || (publication.patient && !state_->stopping);
      if (!publication.patient) entry.deadline = now + state_->settings.patience;
      entry.publication = std::move(publication);
      if (taken) {
        state_->entries += 1;
        state_->bytes += entry.bytes;
      }
      (taken ? state_->inbox : state_->refused).push_back(std::move(entry));
    }
  }
  if (wake) state_->waker.wake();
}

Pressure Publisher::pressure() const {
  std::lock_guard lock(state_->mutex);
  Pressure pressure;
  if (!state_->trouble.empty()) {
    pressure.level = Pressure::Level::kBlocked;
    pressure.reason = state_->trouble;
    pressure.retry_after = Milliseconds(1000);
  } else if (state_->entries > kMostWaiting / 2 || state_->bytes > kMostBytes / 2) {
    pressure.level = Pressure::Level::kHigh;
    pressure.reason = std::to_string(state_->entries) + " messages wait to be confirmed by the server";
    pressure.retry_after = Milliseconds(100);
  }
  return pressure;
}

Publisher::Stats Publisher::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

// ---- The publisher's thread.

void Publisher::State::run() {
  while (step()) {
  }
  connection.reset();
}

bool Publisher::State::step() {
  take_inbox();
  const steady_clock::time_point now = steady_clock::now();
  if (connection == nullptr && now >= next_connect) connect();
  const bool more = connection != nullptr && send_what_can_be_sent();
  if (connection != nullptr) take_events();
  give_up_late(steady_clock::now());
  {
    std::lock_guard lock(mutex);
    if (stopping && inbox.empty() && refused.empty() && waiting.empty() && in_flight.empty()) return false;
    if (more || !inbox.empty() || !refused.empty()) return true;
  }
  if (connection != nullptr && connection->has_buffered_input()) return true;
  std::array<platform::Readiness, 2> ready = {platform::Readiness{waker.descriptor(), true, false}, {}};
  if (connection != nullptr) ready[1] = {connection->descriptor(), true, false};
  platform::wait_ready(std::span(ready.data(), connection != nullptr ? 2 : 1), longest_wait());
  if (ready[0].read) waker.clear();
  return true;
}

// Never so long that a heartbeat is missed, a deadline is overlooked or a connection is not tried again.
std::optional<Milliseconds> Publisher::State::longest_wait() const {
  Milliseconds longest = std::max(Milliseconds(100), settings.heartbeat / 3);
  const auto until = [&longest](steady_clock::time_point time) {
    if (time == steady_clock::time_point::max()) return longest;
    return std::max(Milliseconds(0), std::chrono::ceil<Milliseconds>(time - steady_clock::now()));
  };
  if (connection == nullptr) longest = std::min(longest, until(next_connect));
  if (next_send != steady_clock::time_point()) longest = std::min(longest, until(next_send));
  if (!waiting.empty()) longest = std::min(longest, until(waiting.front().deadline));
  if (!in_flight.empty()) longest = std::min(longest, std::max(Milliseconds(50), until(in_flight.front().deadline)));
  return longest;
}

void Publisher::State::take_inbox() {
  std::vector<Entry> arrived;
  std::vector<Entry> turned_away;
  bool closing = false;
  {
    std::lock_guard lock(mutex);
    arrived.swap(inbox);
    turned_away.swap(refused);
    closing = stopping;
  }
  for (Entry& entry : arrived) waiting.push_back(std::move(entry));
  for (Entry& entry : turned_away) {
    entry.publication.done(closing ? Error{ErrorCode::kUnavailable, "the broker is closed"}
                                   : Error{ErrorCode::kOverloaded, "too many messages wait for the server to confirm"});
  }
}

void Publisher::State::connect() {
  Result<std::unique_ptr<Connection>> opened = Connection::open(settings, "publisher", next_host++);
  if (opened) {
    connection = std::move(*opened);
    if (Status status = set_up(); !status) return lose(status.error());
    return;
  }
  lose(opened.error());
}

Status Publisher::State::set_up() {
  declared.forget();
  first_tag = 1;
  next_send = {};
  if (Status status = connection->open_channel(kPublishing); !status) return status;
  if (Status status = connection->confirm_select(kPublishing); !status) return status;
  if (Status status = declared.foundation(*connection); !status) return status;
  backoff.reset();
  set_trouble("", false);
  std::lock_guard lock(mutex);
  stats.connections += 1;
  return {};
}

void Publisher::State::lose(const Error& error) {
  connection.reset();
  next_connect = steady_clock::now() + backoff.next();
  set_trouble(error.message, false);
  std::uint64_t again = 0;
  while (!in_flight.empty()) {
    Entry entry = std::move(in_flight.back());
    in_flight.pop_back();
    if (entry.completed) continue;
    ++again;
    entry.uncertain = true;
    waiting.push_front(std::move(entry));
  }
  std::lock_guard lock(mutex);
  stats.resent += again;
}

// The server has closed the channel, because of one of the messages in flight; nobody knows which. They are sent again
// one by one, so that only the culprit is refused.
void Publisher::State::reopen_channel(const Error& error) {
  const bool alone = std::count_if(in_flight.begin(), in_flight.end(), [](const Entry& e) { return !e.completed; }) == 1;
  while (!in_flight.empty()) {
    Entry entry = std::move(in_flight.back());
    in_flight.pop_back();
    if (entry.completed) continue;
    entry.tries += 1;
    entry.uncertain = !alone;
    if ((alone && entry.tries > 1) || entry.tries > kMostTries) {
      complete(entry, error);
    } else {
      waiting.push_front(std::move(entry));
    }
  }
  declared.forget();
  first_tag = 1;
  Status status = connection->open_channel(kPublishing);
  if (status) status = connection->confirm_select(kPublishing);
  if (status) status = declared.foundation(*connection);
  if (!status) lose(status.error());
}

// True when more can be sent, after a look at the confirms.
bool Publisher::State::send_what_can_be_sent() {
  {
    std::lock_guard lock(mutex);
    if (blocked) return false;
  }
  if (steady_clock::now() < next_send) return false;
  for (int burst = 0; burst < kBurst; ++burst) {
    if (waiting.empty() || in_flight.size() >= settings.window) return false;
    if (waiting.front().tries > 0 && !in_flight.empty()) return false;  // A suspect goes alone.
    if (!in_flight.empty() && in_flight.back().tries > 0) return false;
    Entry entry = std::move(waiting.front());
    waiting.pop_front();
    if (!send(std::move(entry))) return false;
  }
  return true;
}

Status Publisher::State::prepare(Entry& entry, Route& route) {
  const Destination& to = entry.publication.to;
  switch (to.kind) {
    case Destination::Kind::kReady: {
      if (Status status = declared.ready(*connection, to.name); !status) return status;
      const Milliseconds passed = std::chrono::floor<Milliseconds>(steady_clock::now() - entry.submitted);
      const DelayPath path = delay_path(settings.delay, to.delay - passed);
      if (Status status = declared.path(*connection, path); !status) return status;
      route = route_of(names, path, names.queue(to.name));
      return {};
    }
    case Destination::Kind::kDead:
      if (Status status = declared.dead(*connection, to.name); !status) return status;
      route = {"", names.dead(to.name), {}};
      return {};
    case Destination::Kind::kNotices: route = {names.notices(), "", {}}; return {};
    case Destination::Kind::kQueue: route = {"", to.name, {}}; return {};
    case Destination::Kind::kExchange: route = {to.name, to.key, {}}; return {};
  }
  return {};
}

// False when the connection was lost over it.
bool Publisher::State::send(Entry entry) {
  Route route;
  if (Status status = prepare(entry, route); !status) {
    const bool alive = connection->alive();
    // Refused for good, or only now: a queue whose node is just starting has no home yet.
    if (alive && is_final(status.error().code)) {
      complete(entry, status);
      return true;
    }
    waiting.push_front(std::move(entry));
    if (!alive) {
      lose(status.error());
    } else {
      next_send = steady_clock::now() + kNotNow;
      set_trouble(status.error().message, false);
    }
    return false;
  }
  if (next_send != steady_clock::time_point()) {
    next_send = {};
    set_trouble("", false);
  }
  FieldTable& headers = entry.publication.message.headers;
  const bool with_path = !route.cc.empty();
  if (with_path) headers.emplace_back("CC", std::move(route.cc));
  const Status status = connection->publish(kPublishing, route.exchange, route.key, entry.publication.message, true);
  if (with_path) headers.pop_back();
  entry.sent = true;
  entry.returned = false;
  in_flight.push_back(std::move(entry));
  if (!status) lose(status.error());
  return status.has_value();
}

void Publisher::State::take_events() {
  while (connection != nullptr) {
    Result<std::optional<Event>> event = connection->next_event();
    if (!event) return lose(event.error());
    if (!event->has_value()) return;
    if (const Confirm* confirm = std::get_if<Confirm>(&**event)) {
      take_confirm(*confirm);
    } else if (ReturnedMessage* returned = std::get_if<ReturnedMessage>(&**event)) {
      take_return(std::move(*returned));
    } else if (const Blocked* block = std::get_if<Blocked>(&**event)) {
      set_trouble("the server takes no messages: " + block->reason, true);
    } else if (std::holds_alternative<Unblocked>(**event)) {
      set_trouble("", false);
    } else if (const ChannelClosed* closed = std::get_if<ChannelClosed>(&**event)) {
      if (closed->channel == kPublishing) {
        reopen_channel(closed->error);
      } else {
        declared.forget();
      }
    }
  }
}

void Publisher::State::take_confirm(const Confirm& confirm) {
  if (confirm.tag < first_tag) return;
  const std::size_t index = static_cast<std::size_t>(confirm.tag - first_tag);
  if (index >= in_flight.size()) return;
  for (std::size_t i = confirm.multiple ? 0 : index; i <= index; ++i) {
    if (in_flight[i].over) continue;
    in_flight[i].over = true;
    if (!in_flight[i].completed) settle(in_flight[i], confirm.accepted);
  }
  while (!in_flight.empty() && in_flight.front().over) {
    in_flight.pop_front();
    ++first_tag;
  }
}

void Publisher::State::settle(Entry& entry, bool accepted) {
  if (entry.returned) {
    if (entry.tries == 0) {
      // Somebody has removed the queue. It is made again, once.
      declared.forget();
      Entry again = std::move(entry);
      again.tries = 1;
      again.over = false;
      entry.completed = entry.over = true;
      waiting.push_front(std::move(again));
      return;
    }
    return complete(entry, Error{ErrorCode::kUnavailable,
                                 "no queue took the message, the server said: " + entry.return_text});
  }
  if (accepted) return complete(entry, Status());
  complete(entry, Error{ErrorCode::kOverloaded, "the server refused the message: the queue is full or not available"});
}

void Publisher::State::take_return(ReturnedMessage returned) {
  for (Entry& entry : in_flight) {
    if (entry.completed || entry.returned) continue;
    if (entry.publication.message.message_id != returned.message.message_id) continue;
    entry.returned = true;
    entry.return_text = std::to_string(returned.code) + " " + returned.text + " (exchange '" + returned.exchange +
                        "', key '" + returned.key + "')";
    return;
  }
}

void Publisher::State::complete(Entry& entry, Status status) {
  entry.completed = true;
  // Whatever the last try came to: an earlier one may have been written.
  if (!status && entry.uncertain && status.error().code != ErrorCode::kUnavailable) {
    status = Error{ErrorCode::kUnavailable, status.error().message};
  }
  std::function<void(Status)> done = std::exchange(entry.publication.done, nullptr);
  {
    std::lock_guard lock(mutex);
    entries -= 1;
    bytes -= entry.bytes;
    if (status) stats.confirmed += 1;
  }
  if (done) done(std::move(status));
}

void Publisher::State::give_up_late(steady_clock::time_point now) {
  bool is_blocked = false;
  bool closing = false;
  std::string reason;
  {
    std::lock_guard lock(mutex);
    is_blocked = blocked;
    reason = trouble;
    closing = stopping;
  }
  if (reason.empty()) reason = "the server does not confirm";
  // The oldest are at the front, so the late ones are as well.
  while (!waiting.empty() && (waiting.front().deadline <= now || (closing && connection == nullptr))) {
    Entry entry = std::move(waiting.front());
    waiting.pop_front();
    const bool certainly_not_written = is_blocked && !entry.sent;
    complete(entry, Error{certainly_not_written ? ErrorCode::kOverloaded : ErrorCode::kUnavailable, reason});
  }
  for (Entry& entry : in_flight) {
    if (entry.completed) continue;
    if (entry.deadline > now) break;
    // Its place is kept: the confirm may still come, and others are counted from it.
    complete(entry, Error{ErrorCode::kUnavailable, reason});
  }
}

void Publisher::State::set_trouble(std::string text, bool is_blocked) {
  std::lock_guard lock(mutex);
  trouble = std::move(text);
  blocked = is_blocked;
}

void Publisher::State::announce(const std::string& queue) {
  if (!settings.notices) return;
  const std::int64_t now = platform::real_clock().now().wall_us;
  Entry entry;
  entry.publication.to.kind = Destination::Kind::kNotices;
  entry.publication.message.body = Notice{.kind = Notice::Kind::kQueue, .name = queue, .stamp = now}.to_text();
  entry.submitted = steady_clock::now();
  entry.deadline = entry.submitted + settings.patience;
  {
    std::lock_guard lock(mutex);
    entries += 1;
  }
  waiting.push_front(std::move(entry));
}

}  // namespace bide::brokers::rabbitmq
