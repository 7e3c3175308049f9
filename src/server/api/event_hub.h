// EventHub: what happens, told to whoever listens at /v1/events as server-sent events.
//
//   event: job.enqueued    data: {"id":"...","kind":"...","queue":"..."}
//   event: job.leased      data: {"id":"...","kind":"...","queue":"...","attempt":1}
//   event: job.settled     data: {"id":"...","kind":"...","queue":"...","outcome":"done"}
//   event: skipped         data: {"count":1234}       so many job events were left out, because there were too many
//   event: queues          data: {"queues":[...]}     at the start all, then those that changed, each second
//   event: reset           data: {}                   events were missed: what is known of jobs may be old
//
// Job events are of what passes through this server; the counts of queues are of the whole broker. Of many queues only
// some are told each second, so that a reader keeps up; one that is gone is told once with "removed":true.
//
// Job events, skipped and reset have an id. Who comes back with it (Last-Event-ID) gets what was missed, if that is not
// too long ago, or a reset.

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
#include "server/api/alarm.h"
#include "server/http/response.h"

namespace bide::server {

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
  // Together they stay below what a stream may have unread (HttpLimits::stream_bytes).
  static constexpr std::size_t kReplayBytes = 96 * 1024;  // Of events that can be told again.
  static constexpr std::size_t kQueuesBytes = 64 * 1024;  // Of counts, each second.

  // Without an inspector there are no counts. `poke`: tick() wants to be called soon.
  EventHub(Inspector* inspector, std::function<void()> poke);

  // False: there are too many listeners.
  bool has_room() const;
  // Only of this queue when it is not empty. `last_id`: of the last event that was heard before; empty: none.
  void listen(std::shared_ptr<Stream> stream, std::string queue, std::string_view last_id = {});

  // Cheap when nobody listens: ask before making events. Stays true for a while after the last has gone, so that it can
  // come back.
  bool active() const { return active_.load(std::memory_order_relaxed); }
  void publish(const std::vector<JobEvent>& events);

  std::optional<Moment> tick(Moment now);
  void stop();

 private:
  struct Listener {
    std::shared_ptr<Stream> stream;
    std::string queue;
    std::uint64_t told = 0;  // Changes of queues up to this one.
    Moment last_heard = {};
  };
  // A queue as it was counted last, by the number of its last change.
  struct Counted {
    std::uint64_t change = 0;
    std::string json;
    bool removed = false;
  };
  struct Past {
    std::uint64_t number = 0;
    std::optional<std::string> queue;  // Nothing: for everybody. Empty: of a job whose queue is not known.
    std::string text;
  };

  std::string id_text(std::uint64_t number) const;
  // The number in an id of ours, if everything after it is still there.
  std::optional<std::uint64_t> number_in(std::string_view id) const;
  void remember(std::optional<std::string> queue, std::string text);
  void counted(const std::vector<QueueInfo>& queues);
  void tell_queues(Listener& listener);
  void drop_ended();

  Inspector* const inspector_;
  const std::function<void()> poke_;
  const std::string run_;  // In every id: those of another process are not ours.
  std::atomic<bool> active_ = false;

  mutable std::mutex mutex_;  // Guards everything below.
  bool stopped_ = false;
  std::vector<Listener> listeners_;
  Moment next_ = Moment::max();
  Moment linger_until_ = {};  // Without listeners, active until then.
  bool counting_ = false;
  std::uint64_t told_ = 0;        // Job events in this second,
  std::uint64_t told_bytes_ = 0;  // and their bytes.
  std::uint64_t skipped_ = 0;

  std::uint64_t last_event_ = 0;
  std::deque<Past> past_;  // The newest events, numbered without gaps up to last_event_.
  std::size_t past_bytes_ = 0;

  std::uint64_t last_change_ = 1;  // 1 is none.
  platform::KeyedMap<std::string, Counted> queues_;
  std::map<std::uint64_t, std::string> changes_;  // Names in queues_, by their last change.
};

}  // namespace bide::server
