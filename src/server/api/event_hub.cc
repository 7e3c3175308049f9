#include "server/api/event_hub.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "platform/fatal.h"
#include "platform/keyed_hash.h"
#include "wire/info_json.h"
#include "wire/json_writer.h"

namespace bide::server {

namespace {

constexpr std::chrono::seconds kPeriod{1};
constexpr std::chrono::seconds kKeepAlive{15};
constexpr std::chrono::seconds kReconnect{30};  // A listener that is back within it misses nothing.

std::string event_text(std::string_view type, std::string_view data, std::string_view id = {}) {
  std::string text = "event: " + std::string(type) + "\n";
  if (!id.empty()) text += "id: " + std::string(id) + "\n";
  return text + "data: " + std::string(data) + "\n\n";
}

std::string job_json(const JobEvent& event) {
  std::string data;
  wire::JsonWriter out(data);
  out.begin_object().field("id", event.id).field("kind", event.kind).field("queue", event.queue);
  data += event.more;
  out.end_object();
  return data;
}

std::string queue_json(const QueueInfo& queue) {
  std::string text;
  wire::JsonWriter out(text);
  write(out, queue);
  return text;
}

std::string removed_json(const std::string& name) {
  std::string text;
  wire::JsonWriter(text).begin_object().field("name", name).field("removed", true).end_object();
  return text;
}

std::string this_run() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  char text[24];
  const auto end =
      std::to_chars(text, text + sizeof text, std::chrono::floor<std::chrono::microseconds>(now).count(), 36);
  return std::string(text, end.ptr);
}

}  // namespace

EventHub::EventHub(Inspector* inspector, std::function<void()> wake)
    : inspector_(inspector), wake_(std::move(wake)), run_(this_run()) {}

bool EventHub::has_room() const {
  std::lock_guard lock(mutex_);
  return !stopped_ && listeners_.size() < kMostListeners;
}

std::string EventHub::id_text(std::uint64_t number) const { return run_ + "-" + std::to_string(number); }

std::optional<std::uint64_t> EventHub::number_in(std::string_view id) const {
  if (!id.starts_with(run_ + "-")) return std::nullopt;
  id.remove_prefix(run_.size() + 1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc() || end != id.data() + id.size() || number > last_event_) return std::nullopt;
  if (last_event_ - number > history_.size()) return std::nullopt;
  return number;
}

void EventHub::listen(std::shared_ptr<Stream> stream, std::string queue, std::string_view last_id) {
  if (!stream) return;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    std::string text = ": bide events\n";
    if (last_id.empty()) {
      text += "id: " + id_text(last_event_) + "\n\n";
    } else if (const auto number = number_in(last_id)) {
      text += "\n";
      for (std::size_t i = history_.size() - (last_event_ - *number); i < history_.size(); ++i) {
        if (queue.empty() || !history_[i].queue || *history_[i].queue == queue) text += history_[i].text;
      }
    } else {
      text += "\n" + event_text("reset", "{}", id_text(last_event_));
    }
    if (!stream->write(std::move(text))) return;
    listeners_.push_back(
        {.stream = std::move(stream), .queue = std::move(queue), .last_write = std::chrono::steady_clock::now()});
    active_ = true;
    next_ = Moment::min();
  }
  wake_();
}

void EventHub::remove_ended() {
  const std::size_t ended = std::erase_if(listeners_, [](const Listener& each) { return each.stream == nullptr; });
  if (ended > 0 && listeners_.empty()) active_until_ = std::chrono::steady_clock::now() + kReconnect;
}

void EventHub::add_to_history(std::optional<std::string> queue, std::string text) {
  history_bytes_ += text.size();
  history_.push_back({++last_event_, std::move(queue), std::move(text)});
  while (history_bytes_ > kReplayBytes) {
    history_bytes_ -= history_.front().text.size();
    history_.pop_front();
  }
  platform::require(history_.empty() || history_.back().number == last_event_, "the newest event can be told again");
}

void EventHub::publish(const std::vector<JobEvent>& events) {
  std::lock_guard lock(mutex_);
  if (!active_ || stopped_) return;
  const std::uint64_t room = kMostEventsASecond - std::min(sent_, kMostEventsASecond);
  std::size_t count = std::min<std::uint64_t>(room, events.size());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    if (sent_bytes_ >= kReplayBytes) count = i;
    if (count == i) break;
    texts.push_back(event_text(events[i].type, job_json(events[i]), id_text(last_event_ + 1)));
    sent_bytes_ += texts.back().size();
    add_to_history(events[i].queue, texts.back());
  }
  sent_ += count;
  skipped_ += events.size() - count;
  for (Listener& listener : listeners_) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      if (listener.queue.empty() || listener.queue == events[i].queue) text += texts[i];
    }
    if (text.empty()) continue;
    listener.last_write = std::chrono::steady_clock::now();
    if (!listener.stream->write(std::move(text))) listener.stream = nullptr;
  }
  remove_ended();
}

void EventHub::on_counts(const std::vector<QueueInfo>& queues) {
  std::lock_guard lock(mutex_);
  counting_ = false;
  if (listeners_.empty()) return;
  const auto change = [this](const std::string& name, std::string json, bool removed) {
    Counted& known = queues_[name];
    changes_.erase(known.change);
    known = {++last_change_, std::move(json), removed};
    changes_.emplace(known.change, name);
  };
  platform::KeyedSet<std::string_view> there;
  for (const QueueInfo& queue : queues) {
    there.insert(queue.name);
    std::string json = queue_json(queue);
    const auto known = queues_.find(queue.name);
    if (known == queues_.end() || known->second.json != json) change(queue.name, std::move(json), false);
  }
  std::vector<std::string> gone;
  for (const auto& [name, known] : queues_) {
    if (!known.removed && !there.contains(name)) gone.push_back(name);
  }
  for (const std::string& name : gone) change(name, removed_json(name), true);
  for (Listener& listener : listeners_) send_queues(listener);
  remove_ended();
  // Removed queues are kept until every listener has been sent them.
  std::uint64_t sent_to_all = last_change_;
  for (const Listener& listener : listeners_) sent_to_all = std::min(sent_to_all, listener.last_change);
  for (auto at = changes_.begin(); at != changes_.end() && at->first <= sent_to_all;) {
    const auto known = queues_.find(at->second);
    if (!known->second.removed) {
      ++at;
      continue;
    }
    queues_.erase(known);
    at = changes_.erase(at);
  }
  platform::require(changes_.size() == queues_.size(), "every queue that was counted has its last change");
}

// Sends what changed since the last time, oldest change first, as much as fits into a second. A queue that changes
// again goes to the end, so each has its turn.
void EventHub::send_queues(Listener& listener) {
  std::string list;
  const bool is_first = listener.last_change == 0;
  auto at = changes_.upper_bound(listener.last_change);
  for (; at != changes_.end() && list.size() < kQueuesBytes; ++at) {
    listener.last_change = at->first;
    if (!listener.queue.empty() && at->second != listener.queue) continue;
    const Counted& queue = queues_.at(at->second);
    if (is_first && queue.removed) continue;
    list += (list.empty() ? "" : ",") + queue.json;
  }
  if (list.empty() && !is_first) return;
  if (listener.last_change == 0) listener.last_change = 1;  // An empty list was sent.
  listener.last_write = std::chrono::steady_clock::now();
  if (!listener.stream->write(event_text("queues", "{\"queues\":[" + list + "]}"))) listener.stream = nullptr;
}

std::optional<Moment> EventHub::tick(Moment now) {
  bool count = false;
  std::optional<Moment> next;
  {
    std::lock_guard lock(mutex_);
    if (!active_) {
      next_ = Moment::max();
      return std::nullopt;
    }
    if (listeners_.empty() && now >= active_until_) {
      // Events are not made from now on: the id is used up, so that a client that reconnects gets a reset.
      active_ = false;
      ++last_event_;
      history_.clear();
      history_bytes_ = 0;
      queues_.clear();
      changes_.clear();
      next_ = Moment::max();
      return std::nullopt;
    }
    if (now < next_) return next_;
    std::string skipped;
    if (skipped_ != 0) {
      skipped = event_text("skipped", wire::count_json("count", skipped_), id_text(last_event_ + 1));
      add_to_history(std::nullopt, skipped);
    }
    sent_ = sent_bytes_ = skipped_ = 0;
    for (Listener& listener : listeners_) {
      std::string text = skipped;
      if (text.empty() && now - listener.last_write >= kKeepAlive) text = ": still here\n\n";
      if (text.empty()) continue;
      listener.last_write = now;
      if (!listener.stream->write(std::move(text))) listener.stream = nullptr;
    }
    remove_ended();
    count = inspector_ != nullptr && !listeners_.empty() && !std::exchange(counting_, true);
    next_ = now + kPeriod;
    next = next_;
  }
  if (count) {
    inspector_->queues([hub = weak_from_this()](const Result<std::vector<QueueInfo>>& queues) {
      const auto self = hub.lock();
      if (!self) return;
      if (queues) return self->on_counts(*queues);
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
  active_ = false;
}

}  // namespace bide::server
