// HttpClient: sends HTTP requests, many at a time, on one thread of its own.
//
//   HttpClient client({.max_per_host = 8});
//   client.send({.method = "POST", .url = "http://127.0.0.1:7070/v1/jobs", .body = json}, [](HttpAnswer answer) { ...
//   });
//
// HTTP/1.1 with connections kept and used again. Redirects are answers like any other: never followed. Proxies named by
// the environment, .netrc and cookies are not looked at. A request that went out on a kept connection which turns out
// to be dead is sent once more on a fresh one: what must not happen twice has to be told apart by what it carries.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"
#include "http_client/http_request.h"

namespace bide::http_client {

// The address of a socket, as a check sees it, without a type of the system.
struct HttpAddress {
  enum class Family : std::uint8_t { kIpv4, kIpv6 };
  Family family = Family::kIpv4;
  std::array<std::uint8_t, 16> bytes = {};  // In network order; of IPv4 the first four.
  std::uint16_t port = 0;

  std::string host() const;       // "192.0.2.1" or "2001:db8::1".
  std::string to_string() const;  // "192.0.2.1:80" or "[2001:db8::1]:80".
};

// The addresses of this machine's own network interfaces, as they are now, with port 0. Empty when the system does not tell.
std::vector<HttpAddress> local_addresses();

// Asked with every address before it is connected to, whether it was looked up, pinned or written in the URL; `host` is
// that of the URL. An error refuses the request, even where another address of the host would be allowed, and its
// message becomes that of the answer. Runs on the client's thread and must not block. Not asked for Unix sockets. A
// connection that is used again was allowed when it was opened.
using AddressCheck = std::function<Status(std::string_view host, const HttpAddress& address)>;

struct HttpClientOptions {
  std::string user_agent = {};        // Empty: "bide/VERSION".
  int max_per_host = 64;              // Requests under way for one scheme, host and port; the others wait their turn.
  int max_per_address = 0;            // Connected to one address, whatever their hosts; others fail. 0: no limit.
  int max_idle = 64;                  // Connections kept though nobody uses them.
  Milliseconds idle_for{60'000};      // How long one is kept.
  std::string certificate_file = {};  // PEM of the authorities to trust instead of the system's.
  AddressCheck address_check = nullptr;  // Null: every address is fine.
};

using HttpDone = std::function<void(HttpAnswer)>;

// Safe to use from any thread.
class HttpClient {
 public:
  using Ticket = std::uint64_t;

  explicit HttpClient(HttpClientOptions options = {});
  // What is not answered by now completes with kCancelled; when this returns every completion has run. Not to be called
  // from a completion.
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `done` runs exactly once, on the client's thread, never within send(). It must not block; it may send and cancel.
  Ticket send(HttpRequest request, HttpDone done);

  // The request completes with kCancelled, unless it is already answered. Its connection is closed.
  void cancel(Ticket ticket);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace bide::http_client
