// Middleware: code around every handler of a worker. The first one added is the outermost.
//
//   worker.use([](bide::Context& context, const bide::Next& next) {
//     auto span = tracer.start(context.job().kind);
//     return next();  // The handler's outcome; its exceptions pass through here too.
//   });

#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "bide/context.h"
#include "bide/coroutine.h"
#include "bide/lease.h"

namespace bide {

using Handler = std::function<Outcome(Context&)>;

// Runs what is inside: the next middleware, or the handler. To be called once, or not at all.
using Next = std::function<Outcome()>;
using Middleware = std::function<Outcome(Context&, const Next&)>;

// The same around handlers that are coroutines, and a coroutine itself:
//
//   [](bide::Context& context, const bide::TaskNext& next) -> bide::Task<bide::Outcome> {
//     const auto start = Clock::now();
//     bide::Outcome outcome = co_await next();
//     ...
//     co_return outcome;
//   }
using TaskHandler = std::function<Task<Outcome>(Context&)>;
using TaskNext = std::function<Task<Outcome>()>;
using TaskMiddleware = std::function<Task<Outcome>(Context&, const TaskNext&)>;

// Two that are often wanted. The functions given run on the handler's thread and must be safe to share.

// One line when an attempt starts and one when it ends, with how: "resize 018f... attempt 2: done after 12 ms".
Middleware log_attempts(std::function<void(std::string_view line)> write);
// How long each attempt took, also when it threw.
Middleware time_attempts(std::function<void(const Job& job, std::chrono::nanoseconds took)> record);
// Those two for handlers that are coroutines.
TaskMiddleware log_task_attempts(std::function<void(std::string_view line)> write);
TaskMiddleware time_task_attempts(std::function<void(const Job& job, std::chrono::nanoseconds took)> record);

}  // namespace bide
