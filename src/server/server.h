// Server: a broker behind HTTP. Puts broker, authenticator, routes, callbacks and connections together, and takes them apart in
// order.
//
//   auto server = Server::start({.url = "bide:./data", .listen = {"127.0.0.1:7070"}});
//   if (!server) return fail(server.error());
//   ...
//   server->stop();  // Finishes what is under way.

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bide/result.h"
#include "server/http/http_server.h"
#include "server/server_options.h"

namespace bide::server {

class Server {
 public:
  // kInvalidArgument: an option is wrong, or others could reach a server without tokens. kPermissionDenied: the address
  // is in use or not for us, or the token file is readable by others. Otherwise what the broker says.
  static Result<std::unique_ptr<Server>> start(ServerOptions options);
  // Without a stop() before, whatever is under way is cut off.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::vector<std::string> urls() const;
  std::vector<ListenAddress> addresses() const;
  // The address of the dashboard with a code that signs in once, for whoever started the server. Nothing: there are no tokens, or
  // no address that a browser can reach.
  std::optional<std::string> sign_in_link() const;
  HttpCounts counts() const;
  const Log& log() const;

  // Reads certificate and key again. On an error the old ones stay in use. Tokens are read again by themselves.
  Status reload();

  // The threads that serve connections do their work: false when none of them came around in that time.
  bool is_responsive(std::chrono::milliseconds patience) const;

  // No new connection or request; what is under way is finished, and polls that wait are answered empty. False: that
  // took longer than the grace time, and the rest was cut off.
  bool stop();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace bide::server
