// Requester: sends requests and brings their replies. A request is an ordinary job with an id of our own, an expiry that is
// its deadline, and a header (core/request_rules.h); its reply is its result, which Inspector::watch() brings. So every
// broker that has `requests` among its capabilities carries them.
//
//   enqueue ──confirmed──► watch ──done──► reply          at the deadline: kTimedOut, the job is cancelled, and what
//                               └──dead──► kHandlerFailed  comes within kLateWait is counted as late and dropped
//
// Safe to call from any thread. Completions run on a thread of the broker or on the requester's own, once for each request.

#pragma once

#include <memory>
#include <string_view>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "bide/request.h"

namespace bide::rpc {

class Requester {
 public:
  // The inspector may be null: then there are no replies.
  Requester(std::shared_ptr<Broker> broker, std::shared_ptr<Inspector> inspector);
  ~Requester();  // Closes.
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // Of make_request(). An id that is not nil is kept.
  void request(Job job, Milliseconds timeout, Completion<Reply> done);

  // Answers what is under way with kUnconfirmed, and whatever comes afterwards with kInvalidArgument. The broker is not
  // called any more. Not from a completion.
  void close();

  RequestStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace bide::rpc
