// ServerOptions: everything that `bide serve` can be told, by flags or by its configuration file.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "server/callbacks/callback_options.h"
#include "server/http/limits.h"
#include "server/log/log.h"

namespace bide::server {

struct TlsFiles {
  std::string certificate = {};  // PEM, the whole chain. Empty: no TLS.
  std::string key = {};          // PEM.
};

struct ServerOptions {
  std::string url = "bide:./data";  // The broker.

  // "127.0.0.1:7070", "[::1]:7070", "localhost:7070", port 0: any; "unix:/run/bide/bide.sock".
  std::vector<std::string> listen = {"127.0.0.1:7070"};
  TlsFiles tls = {};                     // For every address that is not a Unix socket.
  std::vector<std::string> hosts = {};   // Names under which browsers may reach us, besides localhost and addresses.
  int threads = 2;                       // That serve HTTP.
  HttpLimits limits = {};
  std::chrono::milliseconds grace{25'000};  // To finish what is under way after SIGTERM.

  std::string token_file = {};              // Empty: `tokens` in the data directory, where the broker has one.
  std::string backup_directory = {};        // Where callers of the API may have backups made. Empty: nowhere.
  bool local_without_token = false;         // Processes of this machine and of our own user need none.

  CallbackOptions callbacks = {};
  LogOptions log = {};
  std::string version = {};                 // Told to those who may read.
};

}  // namespace bide::server
