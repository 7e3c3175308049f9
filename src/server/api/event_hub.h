// EventHub: the server-sent events of /v1/events.
//
//   event: job.enqueued    data: {"id":"...","kind":"...","queue":"..."}
//   event: job.leased      data: {"id":"...","kind":"...","queue":"...","attempt":1}
//   event: job.settled     data: {"id":"...","kind":"...","queue":"...","outcome":"done"}
//   event: skipped         data: {"count":1234}       this many job events were dropped: too many a second
//   event: queues          data: {"queues":[...]}     all at first, then each second those that changed
//   event: reset           data: {}                   events were missed: reload what you know of jobs
//
// Job events are of what passes through this server; the counts of queues are of the whole broker. With many queues only
// some are sent each second; one that is gone is sent once with "removed":true.
//
// Job events, skipped and reset have an id. A client that reconnects with it (Last-Event-ID) gets what it missed, or a
// reset when that is too long ago.

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
#include "platform/keyed_hash.h"
#include "platform/timer_thread.h"
#include "server/http/response.h"

namespace bide::server {

using platform::Moment;

struct JobEvent {
  std::string_view type = {};  // "job.enqueued" ...
  JobId id = {};
  std::string kind = {};
  std::string queue = {};
  std::string more = {};  // Further fields, as JSON: ,"outcome":"done"
};

class EventHub : public std::enable_shared_from_this<EventHub> {
 public:
  static constexpr std::size_t kMostListeners = 256;
  static constexpr std::uint64_t kMostEventsASecond = 1000;
  // Together below what a stream may have unread (HttpLimits::stream_bytes).
  static constexpr std::size_t kReplayBytes = 96 * 1024;  // Of events kept for clients that reconnect.
  static constexpr std::size_t kQueuesBytes = 64 * 1024;  // Of counts, each second.

  // Without an inspector there are no counts. `wake`: tick() is due earlier than it said.
  EventHub(Inspector* inspector, std::function<void()> wake);

  // False: there are too many listeners.
  bool has_room() const;
  // Only of this queue when it is not empty. `last_id` is Last-Event-ID, or empty.
  void listen(std::shared_ptr<Stream> stream, std::string queue, std::string_view last_id = {});

  // Cheap: ask before making events. Stays true for a while after the last listener has gone, for it to reconnect.
  bool active() const { return active_.load(std::memory_order_relaxed); }
  void publish(const std::vector<JobEvent>& events);

  std::optional<Moment> tick(Moment now);
  void stop();

 private:
  struct Listener {
    std::shared_ptr<Stream> stream;
    std::string queue;
    std::uint64_t last_change = 0;  // Of queues, that it was sent.
    Moment last_write = {};
  };
  // The newest counts of a queue.
  struct Counted {
    std::uint64_t change = 0;
    std::string json;
    bool removed = false;
  };
  struct Event {
    std::uint64_t number = 0;
    std::optional<std::string> queue;  // Nothing: for all. Empty: the queue of the job is not known.
    std::string text;
  };

  std::string id_text(std::uint64_t number) const;
  // Nothing when it is not an id of this process, or events after it have been dropped.
  std::optional<std::uint64_t> number_in(std::string_view id) const;
  void add_to_history(std::optional<std::string> queue, std::string text);
  void on_counts(const std::vector<QueueInfo>& queues);
  void send_queues(Listener& listener);
  void remove_ended();

  Inspector* const inspector_;
  const std::function<void()> wake_;
  const std::string run_;  // Prefix of ids, unique for each process.
  std::atomic<bool> active_ = false;

  mutable std::mutex mutex_;  // Guards everything below.
  bool stopped_ = false;
  std::vector<Listener> listeners_;
  Moment next_ = Moment::max();
  Moment active_until_ = {};  // Without listeners.
  bool counting_ = false;
  std::uint64_t sent_ = 0;        // Job events in this second,
  std::uint64_t sent_bytes_ = 0;  // and their bytes.
  std::uint64_t skipped_ = 0;

  std::uint64_t last_event_ = 0;
  std::deque<Event> history_;  // The newest events, numbered without gaps up to last_event_.
  std::size_t history_bytes_ = 0;

  std::uint64_t last_change_ = 1;  // 1 is none.
  platform::KeyedMap<std::string, Counted> queues_;
  std::map<std::uint64_t, std::string> changes_;  // Names in queues_, by their last change.
};

}  // namespace bide::server
