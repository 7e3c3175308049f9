#include "server/api/event_hub.h"

#include <algorithm>
#include <utility>

#include "wire/info_json.h"
#include "wire/json_writer.h"

namespace bide::server {

namespace {

constexpr std::chrono::seconds kBeat{1};
constexpr std::chrono::seconds kSilence{15};  // Then a comment, so that a dead connection is noticed.

std::string event_text(std::string_view type, std::string_view data) {
  return "event: " + std::string(type) + "\ndata: " + std::string(data) + "\n\n";
}

std::string job_event_text(const JobEvent& event) {
  std::string data;
  wire::JsonWriter out(data);
  out.begin_object().field("id", event.id).field("kind", event.kind).field("queue", event.queue);
  data += event.more;
  out.end_object();
  return event_text(event.type, data);
}

std::string counts_of(const std::vector<QueueInfo>& queues, const std::string& only) {
  if (only.empty()) return wire::queues_json(queues);
  std::vector<QueueInfo> chosen;
  for (const QueueInfo& queue : queues) {
    if (queue.name == only) chosen.push_back(queue);
  }
  return wire::queues_json(chosen);
}

}  // namespace

EventHub::EventHub(Inspector* inspector, std::function<void()> poke) : inspector_(inspector), poke_(std::move(poke)) {}

bool EventHub::has_room() const {
  std::lock_guard lock(mutex_);
  return !stopped_ && listeners_.size() < kMostListeners;
}

void EventHub::listen(std::shared_ptr<Stream> stream, std::string queue) {
  if (!stream || !stream->write(": bide events\n\n")) return;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    listeners_.push_back(
        {.stream = std::move(stream), .queue = std::move(queue), .last_heard = std::chrono::steady_clock::now()});
    listeners_count_ = listeners_.size();
    next_ = Moment::min();
  }
  poke_();
}

void EventHub::drop_ended() {
  std::erase_if(listeners_, [](const Listener& each) { return each.stream == nullptr; });
  listeners_count_ = listeners_.size();
}

void EventHub::publish(const std::vector<JobEvent>& events) {
  std::lock_guard lock(mutex_);
  if (listeners_.empty()) return;
  const std::uint64_t room = kMostEventsASecond - std::min(told_, kMostEventsASecond);
  const std::size_t count = std::min<std::uint64_t>(room, events.size());
  told_ += count;
  skipped_ += events.size() - count;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back(job_event_text(events[i]));
  for (Listener& listener : listeners_) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      if (listener.queue.empty() || listener.queue == events[i].queue) text += texts[i];
    }
    if (text.empty()) continue;
    listener.last_heard = std::chrono::steady_clock::now();
    if (!listener.stream->write(std::move(text))) listener.stream = nullptr;
  }
  drop_ended();
}

void EventHub::counted(const std::vector<QueueInfo>& queues) {
  std::lock_guard lock(mutex_);
  counting_ = false;
  std::string counts = wire::queues_json(queues);
  const bool changed = counts != last_counts_;
  for (Listener& listener : listeners_) {
    if (!changed && listener.greeted) continue;
    listener.greeted = true;
    listener.last_heard = std::chrono::steady_clock::now();
    if (!listener.stream->write(event_text("queues", counts_of(queues, listener.queue)))) listener.stream = nullptr;
  }
  last_counts_ = std::move(counts);
  drop_ended();
}

std::optional<Moment> EventHub::tick(Moment now) {
  bool count = false;
  std::optional<Moment> next;
  {
    std::lock_guard lock(mutex_);
    if (listeners_.empty()) {
      next_ = Moment::max();
      return std::nullopt;
    }
    if (now < next_) return next_;
    const std::string skipped = skipped_ == 0 ? "" : event_text("skipped", wire::count_json("count", skipped_));
    told_ = skipped_ = 0;
    for (Listener& listener : listeners_) {
      std::string text = skipped;
      if (text.empty() && now - listener.last_heard >= kSilence) text = ": still here\n\n";
      if (text.empty()) continue;
      listener.last_heard = now;
      if (!listener.stream->write(std::move(text))) listener.stream = nullptr;
    }
    drop_ended();
    count = inspector_ != nullptr && !std::exchange(counting_, true);
    next_ = now + kBeat;
    next = next_;
  }
  if (count) {
    inspector_->queues([hub = weak_from_this()](const Result<std::vector<QueueInfo>>& queues) {
      const auto self = hub.lock();
      if (!self) return;
      if (queues) return self->counted(*queues);
      std::lock_guard lock(self->mutex_);
      self->counting_ = false;
    });
  }
  return next;
}

void EventHub::stop() {
  std::vector<Listener> ended;
  std::lock_guard lock(mutex_);
  stopped_ = true;
  ended.swap(listeners_);
  listeners_count_ = 0;
}

}  // namespace bide::server
