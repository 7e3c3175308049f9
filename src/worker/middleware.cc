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

Middleware log_attempts(std::function<void(std::string_view line)> write) {
  return [write = std::move(write)](Context& context, const Next& next) {
    const std::string who = context.job().kind + " " + context.job().id.to_string() + " attempt " +
                            std::to_string(context.attempt()) + ": ";
    const auto start = SteadyClock::now();
    const auto say = [&](const std::string& what) {
      const auto took = std::chrono::duration_cast<Milliseconds>(SteadyClock::now() - start);
      write(who + what + " after " + std::to_string(took.count()) + " ms");
    };
    write(who + "starts");
    try {
      Outcome outcome = next();
      say(std::visit(Describe{}, outcome));
      return outcome;
    } catch (const std::exception& error) {
      say("threw " + std::string(error.what()));
      throw;
    } catch (...) {
      say("threw something that is not a std::exception");
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

}  // namespace bide
