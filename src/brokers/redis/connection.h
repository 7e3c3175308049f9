// Connection: one connection to a Redis server. Calls block, each for a stated time at most. One thread at a time.
//
// After an error the connection is of no more use: what was sent may have been done or not.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "brokers/redis/reply.h"

struct redisContext;

namespace bide::brokers::redis {

struct Host {
  std::string name = "127.0.0.1";
  int port = 6379;

  std::string to_string() const { return name + ":" + std::to_string(port); }
  friend bool operator==(const Host&, const Host&) = default;
};

struct Login {
  std::string user = {};      // Empty: the server's default user.
  std::string password = {};  // Empty: none is sent.
  int database = 0;
};

class Connection {
 public:
  // kUnavailable: nobody there, or not in time. kPermissionDenied: the login is refused; neither user nor password is
  // repeated.
  static Result<std::unique_ptr<Connection>> open(const Host& host, const Login& login, Milliseconds at_most);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const Host& host() const { return host_; }

  // How long each wait of the other calls may be from now on.
  Status set_timeout(Milliseconds at_most);

  // Puts a command into the buffer of those to be sent. The arguments are copied.
  void append(const std::vector<std::string_view>& arguments);

  // Sends what was appended and gives the next answer, in order; an answer may be an error of the server.
  //
  // kUnconfirmed: the connection ended, or the answer did not come in time. kUnavailable: likewise, and nothing can have
  // been done, because nothing was sent.
  Result<Reply> next_reply();

  // append() and next_reply(), with an error of the server turned into one of ours.
  Result<Reply> run(const std::vector<std::string_view>& arguments);

  // From any thread: a wait under way ends with an error, and so does every later call.
  void interrupt();

  // For a subscriber that waits for the descriptor itself: sends what was appended; and the answers that have arrived.
  int descriptor() const;
  Status flush();
  Result<std::vector<Reply>> arrived();

 private:
  Connection(Host host, redisContext* context) : host_(std::move(host)), context_(context) {}
  Error failure(const char* doing) const;
  bool has_ended() const;  // The server has closed the connection.

  const Host host_;
  redisContext* const context_;
  bool sent_ = false;  // Something that has no answer yet may have reached the server.
  std::size_t appended_ = 0;    // Commands that have not been sent.
  std::size_t unanswered_ = 0;  // And those that may have been.
};

// What an error of the server means for a caller.
//
// kOverloaded: out of memory (OOM). kUnavailable: it loads its data, is a replica, has no quorum of replicas, cannot
// save: nothing was done, another time or another server may do. kPermissionDenied: the login, or an ACL.
// Otherwise kIoError.
Error error_of(const Reply& reply);
// The server cannot do anything for us now, but may soon, or another one in its place: connect again.
bool is_away(const Reply& reply);

}  // namespace bide::brokers::redis
