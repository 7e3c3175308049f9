// ApiCaller: calls of a server's /v1 API. Each is sent again, with growing waits, as long as the server is away,
// patience lasts and it does no harm; then it completes, once.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "bide/job.h"
#include "bide/result.h"
#include "brokers/remote/remote_url.h"
#include "http_client/http_client.h"
#include "platform/timer_thread.h"

namespace bide::brokers::remote {

struct ApiCall {
  std::string method = "GET";
  std::string path = {};  // "/v1/jobs?limit=5"
  std::string body = {};
  bool repeatable = true;  // Does no harm when it arrives twice, and is answered the same.
  bool patient = true;     // Sent again while the server is away. Not: it fails with the first try.
  Milliseconds wait{0};    // How long the server was asked to hold it.
  std::size_t answer_bytes = 256 * 1024 * 1024;
};

// The body of the answer, or an error of the seam:
// kUnavailable: nobody could be reached, or the server did nothing; kUnconfirmed: it was sent and nobody knows what
// came of it (never for a GET); kPermissionDenied: the token; otherwise what the server says.
using Answered = std::function<void(Result<std::string>)>;

class ApiCaller {
 public:
  explicit ApiCaller(RemoteSettings settings);
  ~ApiCaller() { close(); }

  // `answered` runs once, on a thread of this object, and must not block.
  void call(ApiCall call, Answered answered);

  // What has no answer by now completes with kUnavailable or kUnconfirmed; when this returns all have. Not from a
  // completion.
  void close();

  platform::DelayedTasks& delayed_tasks() { return delayed_tasks_; }
  const RemoteSettings& settings() const { return settings_; }
  // Whether this is a thread on which completions run: it must not wait for one.
  bool is_own_thread() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending;

  void send(const std::shared_ptr<Pending>& pending);
  void take(const std::shared_ptr<Pending>& pending, http_client::HttpAnswer answer);
  void again_or_fail(const std::shared_ptr<Pending>& pending, Milliseconds at_least, Error error);
  static void fail(const Pending& pending, Error error);

  const RemoteSettings settings_;
  std::atomic<bool> closing_ = false;
  platform::DelayedTasks delayed_tasks_;

  // Held while something is handed to http_, so that nobody does so who has not seen that it is closing.
  std::mutex sending_;
  std::unique_ptr<http_client::HttpClient> http_;
};

}  // namespace bide::brokers::remote
