#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "bench/child.h"
#include "bench/figures.h"
#include "bench/http_connection.h"
#include "bench/server_parts.h"
#include "bench/stopwatch.h"

namespace bide::bench {

namespace {

constexpr int kPaceMs = 2;  // Between two jobs that come alone.

// Workers that wait for a job with a long poll each, watched by one thread.
class Pollers {
 public:
  explicit Pollers(const ServerProcess& server) : server_(server), watched_(::epoll_create1(EPOLL_CLOEXEC)) {}
  ~Pollers() { ::close(watched_); }
  Pollers(const Pollers&) = delete;
  Pollers& operator=(const Pollers&) = delete;

  Status open(int count) {
    for (int i = 0; i < count; ++i) {
      auto connection = HttpConnection::open(server_.port());
      if (!connection) return connection.error();
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = static_cast<std::uint64_t>(i);
      if (::epoll_ctl(watched_, EPOLL_CTL_ADD, connection->descriptor(), &event) != 0) {
        return Error{ErrorCode::kIoError, "epoll"};
      }
      connections_.push_back(std::move(*connection));
      if (Status asked = poll(static_cast<std::size_t>(i)); !asked) return asked;
    }
    return {};
  }

  // Waits for so many of them to be woken; the milliseconds that each took since the watch was started. They wait
  // again when all have come, so that what they ask does not get in the way of what is measured.
  Status wait_for(int count, const Stopwatch& watch, std::vector<double>& took_ms) {
    std::vector<std::size_t> woken;
    std::vector<epoll_event> events(connections_.size());
    while (static_cast<int>(woken.size()) < count) {
      const int ready = ::epoll_wait(watched_, events.data(), static_cast<int>(events.size()), 10'000);
      if (ready <= 0) return Error{ErrorCode::kIoError, "jobs were enqueued and no worker was woken"};
      for (int i = 0; i < ready; ++i) {
        const auto which = static_cast<std::size_t>(events[static_cast<std::size_t>(i)].data.u64);
        auto reply = connections_[which].receive_some();
        if (!reply) return reply.error();
        if (!*reply) continue;
        if ((*reply)->body.find("\"token\"") == std::string::npos) {
          return Error{ErrorCode::kIoError, "a worker was woken without a job: " + (*reply)->body};
        }
        took_ms.push_back(watch.microseconds() / 1000);
        woken.push_back(which);
      }
    }
    for (const std::size_t which : woken) {
      if (Status asked = poll(which); !asked) return asked;
    }
    return {};
  }

 private:
  Status poll(std::size_t which) {
    return connections_[which].send("POST", "/v1/leases", R"({"queue":"woken","max":1,"wait":"120s","lease":"10m"})");
  }

  const ServerProcess& server_;
  int watched_;
  std::vector<HttpConnection> connections_;
};

std::string batch_of(int jobs) {
  std::string body = "[";
  for (int i = 0; i < jobs; ++i)
    body += std::string(i > 0 ? "," : "") + R"({"kind":"bench","queue":"woken","body":{}})";
  return body + "]";
}

Status accepted_by(HttpConnection& connection) {
  const auto reply = connection.receive();
  if (!reply) return reply.error();
  if (reply->status / 100 == 2) return {};
  return Error{ErrorCode::kIoError, "enqueue was answered " + std::to_string(reply->status) + " " + reply->body};
}

Result<WokenPart> run(const ServerProcess& server, int count, int jobs, int rounds_of_all) {
  auto producer = HttpConnection::open(server.port());
  if (!producer) return producer.error();
  Pollers pollers(server);
  if (Status opened = pollers.open(count); !opened) return opened.error();
  std::vector<double> alone_ms, all_ms;
  std::vector<double> ignored;
  // Until every poll waits at the server; the first ones do not count.
  for (int i = 0; i < jobs / 10 + jobs; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kPaceMs));
    const Stopwatch watch;
    if (Status sent = producer->send("POST", "/v1/jobs", batch_of(1)); !sent) return sent.error();
    if (Status woken = pollers.wait_for(1, watch, i < jobs / 10 ? ignored : alone_ms); !woken) return woken.error();
    if (Status accepted = accepted_by(*producer); !accepted) return accepted.error();
  }
  const std::string everybody = batch_of(count);
  for (int round = 0; round < rounds_of_all; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const Stopwatch watch;
    if (Status sent = producer->send("POST", "/v1/jobs", everybody); !sent) return sent.error();
    if (Status woken = pollers.wait_for(count, watch, all_ms); !woken) return woken.error();
    if (Status accepted = accepted_by(*producer); !accepted) return accepted.error();
  }
  return WokenPart{quantile(alone_ms, 0.5), quantile(alone_ms, 0.99), quantile(all_ms, 0.99)};
}

}  // namespace

Result<WokenPart> measure_woken(const ServerProcess& server, int pollers, int jobs, int rounds_of_all) {
  return run_in_child<WokenPart>(Ending::kByItself,
                                 [&](auto report) { report(run(server, pollers, jobs, rounds_of_all)); });
}

}  // namespace bide::bench
