// RemoteSettings: what an http:, https: or http+unix: URL of a bide server says.
//
//   http://127.0.0.1:7070
//   https://jobs.example.org/bide?token_file=/etc/bide/token&ca=/etc/ssl/ours.pem
//   http+unix:/run/bide/bide.sock
//
// A token is never part of the URL, which ends up in lists of processes and in logs: it comes from a file or from the
// environment, BIDE_TOKEN. Nothing here prints it.

#pragma once

#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/result.h"

namespace bide::brokers::remote {

struct RemoteSettings {
  std::string base = {};         // "http://host:7070", without a slash at the end.
  std::string unix_socket = {};  // Not empty: the way there.
  std::string token = {};        // Empty: none is shown.
  std::string ca = {};           // File of the authorities to trust; empty: the system's.
  std::size_t batch = 1000;      // Items of one request, at most.
  Milliseconds patience{5'000};  // How long a call waits for a server that is away.

  std::string place() const { return unix_socket.empty() ? base : unix_socket; }  // For messages.
};

// `environment_token` is what BIDE_TOKEN says; a token_file goes before it.
//
// kInvalidArgument: what is wrong and what is allowed. kNotFound, kPermissionDenied: the token file.
Result<RemoteSettings> parse_remote_url(std::string_view scheme, std::string_view rest,
                                        std::string_view environment_token);

}  // namespace bide::brokers::remote
