// MetricsEndpoint: an HTTP server with GET /metrics of this process, for `bide work --metrics ADDRESS`.

#pragma once

#include <memory>
#include <string>

#include "platform/task_thread.h"
#include "server/http/http_server.h"

namespace bide::cli {

class MetricsEndpoint {
 public:
  // Throws Failure: the address cannot be used.
  explicit MetricsEndpoint(const std::string& address);
  ~MetricsEndpoint();

  std::string url() const;

 private:
  platform::TaskThread writer_;  // Asking the broker may take a while.
  std::unique_ptr<server::HttpServer> server_;
};

}  // namespace bide::cli
