#include <sys/resource.h>

#include <utility>
#include <vector>

#include "bench/child.h"
#include "bench/http_connection.h"
#include "bench/server_parts.h"

namespace bide::bench {

namespace {

Status allow_descriptors(int count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto wanted = static_cast<rlim_t>(count) + 100;
  if (limit.rlim_cur >= wanted) return {};
  limit.rlim_cur = wanted;
  if (limit.rlim_max < wanted || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{ErrorCode::kIoError, "this process may not open " + std::to_string(count) + " connections"};
  }
  return {};
}

Status ask_once(HttpConnection& connection) {
  const auto reply = connection.ask("GET", "/healthz", "");
  if (!reply) return reply.error();
  if (reply->status != 200) return Error{ErrorCode::kIoError, "/healthz was answered " + std::to_string(reply->status)};
  return {};
}

// Each has had one request and its answer, and is kept.
Result<IdlePart> run(const ServerProcess& server, int count) {
  // What the server needs once, however many there are, is not theirs: the first ones do not count.
  const int first = count / 50;
  if (Status allowed = allow_descriptors(first + count); !allowed) return allowed.error();
  std::vector<HttpConnection> connections;
  const auto grow_to = [&](std::size_t size) -> Status {
    while (connections.size() < size) {
      auto connection = HttpConnection::open(server.port());
      if (!connection) return connection.error();
      if (Status asked = ask_once(*connection); !asked) return asked;
      connections.push_back(std::move(*connection));
    }
    return {};
  };
  if (Status grown = grow_to(static_cast<std::size_t>(first)); !grown) return grown.error();
  const std::uint64_t before = server.resident_bytes();
  if (Status grown = grow_to(static_cast<std::size_t>(first + count)); !grown) return grown.error();
  const std::uint64_t after = server.resident_bytes();
  // They are still there: the last and the first of them answer.
  if (Status asked = ask_once(connections.front()); !asked) return asked.error();
  if (Status asked = ask_once(connections.back()); !asked) return asked.error();
  const double bytes = after > before ? static_cast<double>(after - before) : 0;
  return IdlePart{static_cast<std::uint64_t>(count), bytes / count};
}

}  // namespace

Result<IdlePart> measure_idle_connections(const ServerProcess& server, int connections) {
  return run_in_child<IdlePart>(Ending::kByItself, [&](auto report) { report(run(server, connections)); });
}

}  // namespace bide::bench
