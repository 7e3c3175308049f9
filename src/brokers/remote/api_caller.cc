#include "brokers/remote/api_caller.h"

#include <initializer_list>
#include <algorithm>
#include <utility>

#include "platform/random.h"
#include "wire/problem.h"

namespace bide::brokers::remote {

namespace {

using http_client::HttpAnswer;
using http_client::HttpFailure;

constexpr Milliseconds kConnectWithin{5'000};
constexpr Milliseconds kAnswerWithin{30'000};
constexpr int kMostRequests = 256;  // Long polls are among them.

// Set on the threads that run completions: which caller they belong to.
thread_local const ApiCaller* own_thread_of = nullptr;

class OwnThread {
 public:
  explicit OwnThread(const ApiCaller* caller) : before_(std::exchange(own_thread_of, caller)) {}
  ~OwnThread() { own_thread_of = before_; }

 private:
  const ApiCaller* before_;
};

Milliseconds backoff(int tries) {
  thread_local platform::SystemRandom random;
  const std::int64_t longest = std::int64_t{50} << std::min(tries, 5);  // Up to 1.6 s.
  return Milliseconds(longest / 2 + static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(longest / 2)));
}

}  // namespace

namespace {

// What most likely helps.
std::string hint_for(const HttpAnswer& answer, bool tls) {
  const auto says = [&](std::string_view text) { return answer.error.find(text) != std::string::npos; };
  if (answer.failure == HttpFailure::kNotConnected) return "; is it running? `bide serve` starts a server";
  if (answer.failure == HttpFailure::kTls && (says("wrong version number") || says("packet length too long"))) {
    return "; it does not speak TLS there: is it http:// ?";
  }
  // A server of plain HTTP may wait for the rest of what it takes for a request.
  if (tls && says("SSL connection timeout")) return "; does it speak TLS there, or is it http:// ?";
  if (answer.failure == HttpFailure::kTls && says("certificate")) {
    return "; ?ca=FILE at the end of the URL names the certificate to trust";
  }
  if (answer.failure == HttpFailure::kBroken && !tls) return "; if it speaks TLS there, it is https://";
  return "";
}

}  // namespace

struct ApiCaller::Pending {
  ApiCall call;
  Answered answered;
  Clock::time_point since;
  int tries = 0;
  bool unconfirmed = false;  // A try may have reached the server, which did not say what came of it.
};

ApiCaller::ApiCaller(RemoteSettings settings) : settings_(std::move(settings)) {
  http_client::HttpClientOptions options;
  options.max_per_host = kMostRequests;
  options.max_idle = 16;
  options.certificate_file = settings_.ca;
  http_ = std::make_unique<http_client::HttpClient>(std::move(options));
}

void ApiCaller::close() {
  {
    const std::lock_guard lock(sending_);
    if (closing_.exchange(true)) return;
  }
  delayed_tasks_.stop();
  http_.reset();
}

bool ApiCaller::is_own_thread() const { return own_thread_of == this; }

void ApiCaller::call(ApiCall call, Answered answered) {
  send(std::make_shared<Pending>(Pending{std::move(call), std::move(answered), Clock::now()}));
}

void ApiCaller::send(const std::shared_ptr<Pending>& pending) {
  const ApiCall& call = pending->call;
  http_client::HttpRequest request;
  request.method = call.method;
  request.url = settings_.base + call.path;
  request.body = call.body;
  request.unix_socket = settings_.unix_socket;
  request.once = !call.repeatable;
  request.connect_within = std::min(kConnectWithin, std::max(settings_.patience, Milliseconds(100)));
  request.answer_within = kAnswerWithin + call.wait;
  request.answer_limit = call.answer_bytes;
  if (!settings_.token.empty()) request.fields.emplace_back("Authorization", "Bearer " + settings_.token);
  if (!call.body.empty()) request.fields.emplace_back("Content-Type", "application/json");
  {
    const std::lock_guard lock(sending_);
    if (!closing_) {
      http_->send(std::move(request), [this, pending](HttpAnswer answer) {
        const OwnThread own(this);
        take(pending, std::move(answer));
      });
      return;
    }
  }
  const OwnThread own(this);
  fail(*pending, {ErrorCode::kUnavailable, "the connection to " + settings_.place() + " is closed"});
}

void ApiCaller::take(const std::shared_ptr<Pending>& pending, HttpAnswer answer) {
  if (answer.ok()) return pending->answered(std::move(answer.body));
  if (answer.failure == HttpFailure::kNone) {
    const wire::Problem problem = wire::read_problem(answer.body, answer.status);
    Error error = wire::error_of(problem);
    // The server is on its way down or up and did nothing; or it, or a gateway, does not know.
    const bool passing = answer.status >= 502 && answer.status <= 504;
    switch (error.code) {
      case ErrorCode::kUnconfirmed:
        pending->unconfirmed = true;
        [[fallthrough]];
      case ErrorCode::kUnavailable:
      case ErrorCode::kBusy:
        if (passing) return again_or_fail(pending, problem.retry_after, std::move(error));
        [[fallthrough]];
      default:
        return fail(*pending, std::move(error));
    }
  }
  if (answer.failure == HttpFailure::kInvalid) return fail(*pending, {ErrorCode::kInvalidArgument, answer.error});
  pending->unconfirmed = pending->unconfirmed || answer.sent;
  if (answer.failure == HttpFailure::kTooLarge) return fail(*pending, {ErrorCode::kIoError, answer.error});
  Error error{ErrorCode::kUnavailable, "cannot reach " + settings_.place() + ": " + answer.error +
                                            hint_for(answer, settings_.base.starts_with("https:"))};
  if (answer.failure == HttpFailure::kTls) return fail(*pending, std::move(error));
  again_or_fail(pending, Milliseconds(0), std::move(error));
}

void ApiCaller::again_or_fail(const std::shared_ptr<Pending>& pending, Milliseconds at_least, Error error) {
  const Milliseconds wait = std::max(backoff(pending->tries++), at_least);
  const bool in_time = Clock::now() + wait < pending->since + settings_.patience;
  const bool harmless = pending->call.repeatable || !pending->unconfirmed;
  if (closing_ || !harmless || !in_time || !pending->call.patient) return fail(*pending, std::move(error));
  delayed_tasks_.after(wait, [this, pending] { send(pending); });
}

// Whatever the last try came to: an earlier one may have done it.
void ApiCaller::fail(const Pending& pending, Error error) {
  const auto is_one_of = [&](std::initializer_list<ErrorCode> codes) {
    return std::find(codes.begin(), codes.end(), error.code) != codes.end();
  };
  // These speak of the last try only.
  const bool unknown = is_one_of({ErrorCode::kUnavailable, ErrorCode::kUnconfirmed, ErrorCode::kBusy, ErrorCode::kOverloaded,
                                  ErrorCode::kDiskFull, ErrorCode::kPermissionDenied});
  if (unknown && pending.call.method == "GET") {
    if (error.code == ErrorCode::kUnconfirmed) error.code = ErrorCode::kUnavailable;
  } else if (unknown && pending.unconfirmed) {
    error.code = ErrorCode::kUnconfirmed;
  }
  pending.answered(std::move(error));
}

}  // namespace bide::brokers::remote
