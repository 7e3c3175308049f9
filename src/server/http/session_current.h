// Session::Current: what a session knows of a request from its head until its answer is out.

#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "server/http/exchange.h"
#include "server/http/identity.h"
#include "server/http/memory_budget.h"
#include "server/http/route.h"
#include "server/http/session.h"

namespace bide::server {

struct Session::Current {
  const Route* route = nullptr;
  std::shared_ptr<Exchange> exchange = {};
  Identity caller = {};
  std::shared_ptr<Receipt> receipt = {};  // Of the answer that is being written.
  std::optional<Response> early = {};  // The answer, known before the body came.
  std::chrono::steady_clock::time_point body_since = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point whole_at = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point write_since = {};
  MemoryCharge charge = {};  // Of what is being written.
  int status = 0;
  Method method = Method::kOther;
  bool is_http_1_0 = false;
  bool keep_alive = false;
  bool takes_gzip = false;
  bool stream_ended = false;
};

}  // namespace bide::server
