// Kind: what is the same for all jobs of a kind (its name, the type of its body, its queue, retries, time limit), declared
// once, and used by whoever enqueues them and by whoever runs them.
//
//   struct Resize { std::string file; int width; };
//   NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resize, file, width)
//   inline const bide::Kind<Resize> kResize("resize", {.queue = "images", .time_limit = 5min, .retry = bide::RetryPolicy::none()});
//
//   client.enqueue(kResize, {"cat.png", 640});
//   client.enqueue(kResize, {"dog.png", 640}, [](bide::EnqueueOptions& options) { options.delay = 10s; });
//   worker.handle(kResize, [](const Resize& job) { ... });   // The worker takes from the queue `images` as well.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "bide/body.h"
#include "bide/enqueue_options.h"

namespace bide {

template <class T>
struct Kind {
  using Body = T;

  explicit Kind(std::string kind_name, EnqueueOptions defaults = {}) : name(std::move(kind_name)), options(std::move(defaults)) {}

  std::string name;
  EnqueueOptions options;  // Of every job of this kind, unless it is given others.
};

// What is different about one job.
using ChangeOptions = std::function<void(EnqueueOptions&)>;

// The job of a body of any kind that can be one.
template <class T>
Job make_typed_job(std::string_view kind, const T& body, const EnqueueOptions& options) {
  if constexpr (!TypedBody<T>) {
    return make_job(kind, std::string(std::string_view(body)), options);
  } else {
    require_body_codec<T>();
    if constexpr (HasBodyCodec<T>) {
      Job job = make_job(kind, BodyCodec<T>::encode(body), options);
      if (options.content_type.empty()) job.content_type = BodyCodec<T>::kContentType;
      return job;
    }
  }
}

template <class T>
Job make_typed_job(const Kind<T>& kind, const T& body, const ChangeOptions& change = {}) {
  if (!change) return make_typed_job(kind.name, body, kind.options);
  EnqueueOptions options = kind.options;
  change(options);
  return make_typed_job(kind.name, body, options);
}

}  // namespace bide
