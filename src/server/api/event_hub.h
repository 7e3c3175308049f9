// EventHub: what happens, told to whoever listens at /v1/events as server-sent events.
//
//   event: job.enqueued    data: {"id":"...","kind":"...","queue":"..."}
//   event: job.leased      data: {"id":"...","kind":"...","queue":"...","attempt":1}
//   event: job.settled     data: {"id":"...","kind":"...","queue":"...","outcome":"done"}
//   event: queues          data: {"queues":[...]}     at the start, and every second when something changed
//   event: skipped         data: {"count":1234}       so many job events were left out, because there were too many
//
// Job events are of what passes through this server; the counts of queues are of the whole broker.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
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

  // Without an inspector there are no counts. `poke`: tick() wants to be called soon.
  EventHub(Inspector* inspector, std::function<void()> poke);

  // Only of this queue when it is not empty. False: there are too many listeners.
  bool has_room() const;
  void listen(std::shared_ptr<Stream> stream, std::string queue);

  // Cheap when nobody listens: ask before making events.
  bool active() const { return listeners_count_.load(std::memory_order_relaxed) != 0; }
  void publish(const std::vector<JobEvent>& events);

  std::optional<Moment> tick(Moment now);
  void stop();

 private:
  struct Listener {
    std::shared_ptr<Stream> stream;
    std::string queue;
    bool greeted = false;  // Has had the counts.
    Moment last_heard = {};
  };
  void counted(const std::vector<QueueInfo>& queues);
  void drop_ended();

  Inspector* const inspector_;
  const std::function<void()> poke_;
  std::atomic<std::size_t> listeners_count_ = 0;

  mutable std::mutex mutex_;  // Guards everything below.
  bool stopped_ = false;
  std::vector<Listener> listeners_;
  Moment next_ = Moment::max();
  std::string last_counts_;
  bool counting_ = false;
  std::uint64_t told_ = 0;  // Job events in this second.
  std::uint64_t skipped_ = 0;
};

}  // namespace bide::server
