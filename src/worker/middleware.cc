#include "bide/middleware.h"

#include <string>
#include <utility>
#include <variant>

namespace bide {

namespace {

using SteadyClock = std::chrono::steady_clock;

struct Describe {
  std::string operator()(const Done&) const { return "done"; }
  std::string operator()(const RetryAt& retry) const {
    return "again in " + std::to_string(retry.after.count()) + " ms: " + retry.error;
  }
  std::string operator()(const Dead& dead) const { return "dead: " + dead.error; }
  std::string operator()(const Returned& returned) const { return "returned: " + returned.note; }
};

// Calls its function when the scope is left, in whichever way.
template <class F>
class AtExit {
 public:
  explicit AtExit(F call) : call_(std::move(call)) {}
  ~AtExit() { call_(); }
  AtExit(const AtExit&) = delete;
  AtExit& operator=(const AtExit&) = delete;

 private:
  F call_;
};

}  // namespace

namespace {

// What log_attempts() writes of one attempt.
class AttemptLog {
 public:
  AttemptLog(const Context& context, const std::function<void(std::string_view)>& write)
      : who_(context.job().kind + " " + context.job().id.to_string() + " attempt " + std::to_string(context.attempt()) + ": "),
        write_(write) {
    write_(who_ + "starts");
  }
  void ended(const Outcome& outcome) const { say(std::visit(Describe{}, outcome)); }
  // In the handler of an exception.
  void threw() const {
    try {
      throw;
    } catch (const std::exception& error) {
      say("threw " + std::string(error.what()));
    } catch (...) {
      say("threw something that is not a std::exception");
    }
  }

 private:
  void say(const std::string& what) const {
    const auto took = std::chrono::duration_cast<Milliseconds>(SteadyClock::now() - start_);
    write_(who_ + what + " after " + std::to_string(took.count()) + " ms");
  }

  const std::string who_;
  const std::function<void(std::string_view)>& write_;
  const SteadyClock::time_point start_ = SteadyClock::now();
};

}  // namespace

Middleware log_attempts(std::function<void(std::string_view line)> write) {
  return [write = std::move(write)](Context& context, const Next& next) {
    const AttemptLog log(context, write);
    try {
      Outcome outcome = next();
      log.ended(outcome);
      return outcome;
    } catch (...) {
      log.threw();
      throw;
    }
  };
}

TaskMiddleware log_task_attempts(std::function<void(std::string_view line)> write) {
  return [write = std::move(write)](Context& context, const TaskNext& next) -> Task<Outcome> {
    const AttemptLog log(context, write);
    try {
      Outcome outcome = co_await next();
      log.ended(outcome);
      co_return outcome;
    } catch (...) {
      log.threw();
      throw;
    }
  };
}

Middleware time_attempts(std::function<void(const Job& job, std::chrono::nanoseconds took)> record) {
  return [record = std::move(record)](Context& context, const Next& next) {
    const auto start = SteadyClock::now();
    AtExit at_exit([&] { record(context.job(), SteadyClock::now() - start); });
    return next();
  };
}

TaskMiddleware time_task_attempts(std::function<void(const Job& job, std::chrono::nanoseconds took)> record) {
  return [record = std::move(record)](Context& context, const TaskNext& next) -> Task<Outcome> {
    const auto start = SteadyClock::now();
    AtExit at_exit([&] { record(context.job(), SteadyClock::now() - start); });
    co_return co_await next();
  };
}

}  // namespace bide
