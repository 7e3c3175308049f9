#include "brokers/rabbitmq/publisher.h"

#include <algorithm>
#include <array>
#include <utility>

#include "bide/wait.h"
#include "brokers/rabbitmq/publisher_state.h"
#include "brokers/rabbitmq/version_facts.h"
#include "platform/fatal.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMostWaiting = 65'536;
constexpr std::size_t kMostBytes = 256 * 1024 * 1024;
constexpr int kMostClosures = 4;
constexpr ChannelNumber kMostChannels = 1000;  // The server allows twice as many, unless it is told otherwise.
// So long a channel that is not used any more may owe answers, at least; then they are taken to be lost.
constexpr Milliseconds kLongestAnswer{30'000};
constexpr std::size_t kMostOld = 4;

// By the words of the server: "low on memory", "low on disk", or both.
Pressure::Cause cause_of_block(const std::string& words) {
  if (words.find("memory") != std::string::npos) return Pressure::Cause::kMemory;
  if (words.find("disk") != std::string::npos) return Pressure::Cause::kDisk;
  return Pressure::Cause::kBroker;
}

}  // namespace

// ---- From any thread.

Result<std::unique_ptr<Publisher>> Publisher::open(const Settings& settings, ReplyQueue* replies) {
  auto state = std::make_unique<State>(settings, replies);
  Result<std::unique_ptr<Connection>> connection = Connection::open(settings, "publisher");
  // A server that is being started again: whoever comes then is as patient as those who are there.
  const steady_clock::time_point deadline = steady_clock::now() + settings.patience;
  while (!connection && connection.error().code == ErrorCode::kUnavailable) {
    const Milliseconds pause = state->backoff.next();
    if (steady_clock::now() + pause >= deadline) break;
    platform::wait_ready({}, pause);
    connection = Connection::open(settings, "publisher", state->next_host++);
  }
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
  for (Lane* lane : {&state_->jobs, &state_->notices}) state_->give_up_all(*lane);
}

void Publisher::publish(std::vector<Publication> publications) {
  if (publications.empty()) return;
  const steady_clock::time_point now = steady_clock::now();
  bool wake = false;
  {
    std::lock_guard lock(state_->mutex);
    const bool full = state_->stopping ||
                      state_->entries > std::max<std::size_t>(kMostWaiting, 8 * state_->settings.window) ||
                      state_->bytes > kMostBytes;
    wake = state_->refused.empty() && state_->inbox.empty();
    // Known now, so nobody has to wait to be told.
    const bool hopeless = state_->blocked;
    for (Publication& publication : publications) {
      PendingPublish entry;
      entry.bytes = publication.message.body.size() + 512;
      entry.submitted = now;
      const bool taken = (!full && !hopeless) || (publication.patient && !state_->stopping);
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

void Publisher::publish(std::vector<Publication> publications, std::function<void(std::vector<Status>)> done) {
  struct Batch {
    std::vector<Status> statuses;
    std::size_t missing;
    std::function<void(std::vector<Status>)> done;
  };
  if (publications.empty()) return done({});
  const std::size_t count = publications.size();
  const auto batch = std::make_shared<Batch>(Batch{std::vector<Status>(count), count, std::move(done)});
  for (std::size_t i = 0; i < count; ++i) {
    publications[i].done = [batch, i](Status status) {
      batch->statuses[i] = std::move(status);
      if (--batch->missing == 0) batch->done(std::move(batch->statuses));
    };
  }
  publish(std::move(publications));
}

Status Publisher::publish_and_wait(Publication publication) {
  return wait<void>([&](Completion<void> done) {
    publication.done = std::move(done);
    std::vector<Publication> one;
    one.push_back(std::move(publication));
    publish(std::move(one));
  });
}

Pressure Publisher::pressure() const {
  std::lock_guard lock(state_->mutex);
  Pressure pressure;
  if (!state_->trouble.empty()) {
    pressure.level = Pressure::Level::kBlocked;
    pressure.reason = state_->trouble;
    pressure.retry_after = Milliseconds(1000);
    pressure.cause = state_->blocked ? cause_of_block(state_->trouble) : Pressure::Cause::kUnreachable;
  } else if (state_->entries > kMostWaiting / 2 || state_->bytes > kMostBytes / 2) {
    pressure.level = Pressure::Level::kHigh;
    pressure.reason = std::to_string(state_->entries) + " messages wait to be confirmed by the server";
    const std::size_t too_many = state_->entries - std::min(state_->entries, kMostWaiting / 2);
    pressure.retry_after = std::max(state_->drain_rate.time_to_drain(too_many, steady_clock::now()), Milliseconds(10));
    pressure.cause = Pressure::Cause::kQueueLength;
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
  for (Lane* lane : {&jobs, &notices}) {
    take_up_later(*lane);
    if (connection != nullptr) send_what_can_be_sent(*lane);
  }
  if (connection != nullptr) open_replies();
  if (connection != nullptr) ask_for_counts();
  if (connection != nullptr) take_events();
  bool more = false;
  for (Lane* lane : {&jobs, &notices}) {
    if (connection != nullptr && lane->renew) renew_channel(*lane);
    if (connection != nullptr) close_old(*lane);
    give_up_late(*lane, steady_clock::now());
    // Asked after the confirms have been taken: when they were the last ones, nothing else would wake us.
    more = more || (connection != nullptr && may_send(*lane));
  }
  {
    std::lock_guard lock(mutex);
    if (stopping) {
      if (!stop_at) stop_at = now + settings.patience;
      const bool idle = inbox.empty() && refused.empty() && jobs.empty() && notices.empty();
      if (idle || now >= *stop_at) return false;
    }
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
  if (connection != nullptr && replies != nullptr) longest = std::min(longest, until(replies->next_open()));
  if (stop_at) longest = std::min(longest, until(*stop_at));
  for (const Lane* lane : {&jobs, &notices}) {
    if (!lane->later.empty()) longest = std::min(longest, until(lane->later.begin()->first));
    if (!lane->waiting.empty() || !lane->old.empty()) longest = std::min(longest, Milliseconds(100));
    const SentOn& current = lane->current;
    if (current.open > 0) {
      longest = std::min(longest, std::max(Milliseconds(50), until(current.in_flight.begin()->second.deadline)));
    }
  }
  return longest;
}

Lane* Publisher::State::lane_of(ChannelNumber channel) {
  if (jobs.sent_on(channel) != nullptr) return &jobs;
  return notices.sent_on(channel) != nullptr ? &notices : nullptr;
}

void Publisher::State::take_inbox() {
  std::vector<PendingPublish> arrived;
  std::vector<PendingPublish> turned_away;
  Error why{ErrorCode::kOverloaded, "too many messages wait for the server to confirm"};
  {
    std::lock_guard lock(mutex);
    arrived.swap(inbox);
    turned_away.swap(refused);
    if (blocked) why.message = trouble;
    if (stopping) why = {ErrorCode::kUnavailable, "the broker is closed"};
  }
  for (PendingPublish& entry : arrived) {
    Lane& lane = entry.publication.to.kind == Destination::Kind::kNotices ? notices : jobs;
    lane.waiting.push_back(std::move(entry));
  }
  for (PendingPublish& entry : turned_away) entry.publication.done(why);
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

Status Publisher::State::open_lane(Lane& lane) {
  lane.last_tag = 0;
  do {
    last_channel = last_channel >= kMostChannels ? kReplies + 1 : static_cast<ChannelNumber>(last_channel + 1);
  } while (lane_of(last_channel) != nullptr);
  lane.current.channel = last_channel;
  if (Status status = connection->open_channel(last_channel); !status) return status;
  return connection->confirm_select(last_channel);
}

// Messages of others need it for their delays only.
Status Publisher::State::declare_foundation() {
  return settings.compat.empty() ? declared.foundation(*connection) : Status();
}

Status Publisher::State::set_up() {
  declared.reconnected();
  if (replies != nullptr) replies->reconnected();
  counting_open = false;
  if (!counted.empty()) backlogs.not_counted(std::exchange(counted, {}));
  const VersionFacts facts = facts_of(ServerVersion::of(connection->server_properties()));
  message_bytes = settings.max_message_size > 0 ? static_cast<std::size_t>(settings.max_message_size) : facts.message_bytes;
  obeys_priorities = settings.queue_type == QueueType::kQuorum && facts.quorum_priorities > 1;
  for (Lane* lane : {&jobs, &notices}) {
    if (Status status = open_lane(*lane); !status) return status;
  }
  if (Status status = declare_foundation(); !status) return status;
  backoff.reset();
  set_trouble("", false);
  std::lock_guard lock(mutex);
  stats.connections += 1;
  stats.obeys_priorities = obeys_priorities;
  return {};
}

void Publisher::State::lose(const Error& error) {
  connection.reset();
  next_connect = steady_clock::now() + backoff.next();
  set_trouble(error.message, false);
  for (Lane* lane : {&jobs, &notices}) {
    lane->renew = false;
    resend(*lane, take_back_all(*lane));
  }
}

// The answer to these is lost.
void Publisher::State::resend(Lane& lane, std::vector<PendingPublish> publishes) {
  {
    std::lock_guard lock(mutex);
    stats.resent += publishes.size();
  }
  for (auto pending = publishes.rbegin(); pending != publishes.rend(); ++pending) {
    pending->uncertain = true;
    lane.waiting.push_front(std::move(*pending));
  }
}

// What was in flight and somebody waits for, in the order in which it was sent.
std::vector<PendingPublish> Publisher::State::take_back(SentOn& sent) {
  std::vector<PendingPublish> back;
  for (auto& [tag, pending] : sent.in_flight) {
    if (!pending.completed) back.push_back(std::move(pending));
  }
  platform::require(back.size() == sent.open, "publishes that somebody waits for are counted");
  sent.in_flight.clear();
  sent.open = 0;
  return back;
}

std::vector<PendingPublish> Publisher::State::take_back_all(Lane& lane) {
  std::vector<PendingPublish> all;
  for (SentOn& sent : lane.old) {
    for (PendingPublish& pending : take_back(sent)) all.push_back(std::move(pending));
  }
  lane.old.clear();
  for (PendingPublish& pending : take_back(lane.current)) all.push_back(std::move(pending));
  return all;
}

// The server has closed the channel, because of one of the messages in flight; nobody knows which. They are sent again
// one by one, so that only the culprit is refused.
void Publisher::State::take_closure(Lane& lane, ChannelNumber channel, const Error& error) {
  SentOn& sent = *lane.sent_on(channel);
  const bool in_use = &sent == &lane.current;
  std::vector<PendingPublish> again = take_back(sent);
  if (!in_use) std::erase_if(lane.old, [&](const SentOn& each) { return each.channel == channel; });
  for (auto pending = again.rbegin(); pending != again.rend(); ++pending) {
    pending->closures += 1;
    pending->uncertain = pending->uncertain || again.size() > 1;
    if ((again.size() == 1 && pending->closures > 1) || pending->closures > kMostClosures) {
      complete(*pending, error);
    } else {
      lane.waiting.push_front(std::move(*pending));
    }
  }
  declared.forget();
  Status status = in_use ? open_lane(lane) : Status();
  if (status) status = declare_foundation();
  if (!status) lose(status.error());
}

// A channel that has met a queue between two leaders remembers the dead one and refuses everything for that queue from
// then on (RabbitMQ 3.10, as long as the node is away); a new one finds the new leader. What was sent on the one before
// is still answered there: sent again, it would be there twice.
void Publisher::State::renew_channel(Lane& lane) {
  lane.renew = false;
  lane.renewed = steady_clock::now();
  lane.old.push_back(std::exchange(lane.current, {}));
  lane.old.back().left = lane.renewed;
  if (Status status = open_lane(lane); !status) lose(status.error());
}

// Channels that owe nothing more, or have owed it for too long.
void Publisher::State::close_old(Lane& lane) {
  const steady_clock::time_point now = steady_clock::now();
  for (std::size_t i = 0; i < lane.old.size();) {
    SentOn& sent = lane.old[i];
    const bool too_long = now - sent.left > std::max(settings.patience, kLongestAnswer) || lane.old.size() > kMostOld;
    if (sent.open > 0 && !too_long) {
      ++i;
      continue;
    }
    const ChannelNumber channel = sent.channel;
    std::vector<PendingPublish> unanswered = take_back(sent);
    lane.old.erase(lane.old.begin() + static_cast<std::ptrdiff_t>(i));
    resend(lane, std::move(unanswered));
    if (Status status = connection->begin_close(channel); !status) return lose(status.error());
  }
}

}  // namespace bide::brokers::rabbitmq
