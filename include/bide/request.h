// Requests: jobs whose reply somebody waits for.
//
//   worker.reply<Numbers>("add", [](const Numbers& numbers) { return numbers.a + numbers.b; });
//
//   auto sum = client.request<int>("add", Numbers{1, 2}, {.timeout = 500ms});  // A future; many may be under way.
//   if (const auto reply = sum.get()) use(*reply);
//
// The deadline travels with the request: past it no handler starts, one that runs is told to stop, and no retry is made that
// would begin later. A request never stays in the dead set, and its reply is kept by nobody: whoever needs one or the
// other enqueues a job and asks for its result.

#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "bide/body.h"
#include "bide/job.h"
#include "bide/result.h"

namespace bide {

struct RequestOptions {
  std::string queue = "default";
  Milliseconds timeout{5'000};               // From the call to the reply; at most a day.
  RetryPolicy retry = RetryPolicy::none();   // Within the timeout.
  int priority = 0;
  bool durable = false;                      // Survives a restart of the broker where that is a choice (RabbitMQ).
  std::string content_type = {};             // Empty: what the body's type says.
  Headers headers = {};
};

// What a handler answered, as bytes.
struct Reply {
  std::string body = {};
  std::string content_type = {};
};

// Counted since the client was opened.
struct RequestStats {
  std::uint64_t sent = 0;
  std::uint64_t replied = 0;
  std::uint64_t failed = 0;     // Answered with an error, or not taken by the broker.
  std::uint64_t timed_out = 0;
  std::uint64_t late = 0;       // Replies that came after the deadline, and were dropped.
};

// The job that a request is, without its deadline.
Job make_request(std::string_view kind, std::string body, const RequestOptions& options);
template <class Body>
Job make_typed_request(std::string_view kind, const Body& body, const RequestOptions& options) {
  if constexpr (TypedBody<Body>) {
    require_body_codec<Body>();
    if constexpr (HasBodyCodec<Body>) {
      Job job = make_request(kind, BodyCodec<Body>::encode(body), options);
      if (options.content_type.empty()) job.content_type = BodyCodec<Body>::kContentType;
      return job;
    }
  } else {
    return make_request(kind, std::string(std::string_view(body)), options);
  }
}

// A reply as the type that the caller asked for: Reply, std::string, void, or one with a BodyCodec. kInvalidArgument: it
// cannot be decoded.
template <class T>
Result<T> decode_reply(Result<Reply> reply) {
  if constexpr (std::is_same_v<T, Reply>) {
    return reply;
  } else {
    if (!reply) return reply.error();
    if constexpr (std::is_void_v<T>) {
      return {};
    } else if constexpr (std::is_same_v<T, std::string>) {
      return std::move(reply->body);
    } else {
      require_body_codec<T>();
      if constexpr (HasBodyCodec<T>) {
        try {
          return T(BodyCodec<T>::decode(reply->body));
        } catch (const std::exception& error) {
          return Error{ErrorCode::kInvalidArgument, "the reply cannot be decoded: " + std::string(error.what())};
        }
      }
    }
  }
}

}  // namespace bide
