// HttpServer: listens, and serves a table of routes. One event loop with a few threads for all connections.
//
//   auto server = HttpServer::start({.listen = {{.host = "127.0.0.1", .port = 7070}}, .service = {.routes = ...}});
//   ...
//   server->begin_drain();           // No new connection, no new request on an old one.
//   server->wait_drained(25s);       // What is under way comes to its end.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bide/result.h"
#include "server/http/listen_address.h"
#include "server/http/service.h"

namespace bide::server {

struct HttpOptions {
  std::vector<ListenAddress> listen = {};
  std::string certificate_file = {};  // PEM, the whole chain. Empty: no TLS. Not for Unix sockets.
  std::string key_file = {};
  std::chrono::milliseconds certificate_check_interval{5'000};  // How often the files are looked at.
  int threads = 2;
  ServiceOptions service = {};
};

struct HttpCounts {
  std::size_t connections = 0;  // Open now.
  std::uint64_t accepted = 0;
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;
  std::uint64_t held_bytes = 0;
};

class HttpServer {
 public:
  // Connections are accepted from here on.
  //
  // kPermissionDenied: the address is in use, or not for us. kInvalidArgument: it is not one of this machine, or the
  // certificate cannot be used. kNotFound: there is no such file.
  static Result<std::unique_ptr<HttpServer>> start(HttpOptions options);
  // Cuts off whatever is still open.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Where it listens, with the ports that it was given: "http://127.0.0.1:7070", "unix:/run/bide/bide.sock".
  std::vector<std::string> urls() const;
  std::vector<ListenAddress> addresses() const;

  // Reads certificate and key again; also done when they change. On an error the old ones stay in use.
  Status reload_certificate();

  void begin_drain();
  // False: some connections are still busy after that time.
  bool wait_drained(std::chrono::milliseconds patience);
  // Closes whatever is still open. Nothing is served afterwards; replies that are still out go nowhere.
  void cut_off();

  // For a watchdog. False: no thread of the event loop ran a task within that time.
  bool is_responsive(std::chrono::milliseconds patience) const;

  HttpCounts counts() const;

 private:
  class Core;
  explicit HttpServer(std::shared_ptr<Core> core);

  const std::shared_ptr<Core> core_;  // Sessions hold it too, as long as somebody owes them an answer.
};

}  // namespace bide::server
