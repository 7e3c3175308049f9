#include "server/auth/gate.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "server/auth/caller_address.h"
#include "server/auth/failure_limit.h"
#include "server/auth/scopes.h"
#include "server/auth/token_file.h"

namespace bide::server {
namespace {

constexpr std::int64_t kLookEveryUs = 1'000'000;
constexpr std::string_view kLocal = "local";

// Of the length of a secret, and no secret: hashed in place of what cannot be one, so that it takes as long.
constexpr std::string_view kNoSecret = "bide-no-secret-has-this-form-but-it-is-as-long--";
static_assert(kNoSecret.size() == kTokenCharacters);

// What stands after "Bearer "; nothing when there is no such field. RFC 9110: the scheme in either case.
std::optional<std::string_view> shown_secret(const Request& request) {
  constexpr std::string_view kScheme = "bearer";
  const auto field = request.fields.find("authorization");
  if (field == request.fields.end()) return std::nullopt;
  std::string_view authorization = field->second;
  const bool is_bearer = authorization.size() > kScheme.size() && authorization[kScheme.size()] == ' ' &&
                         std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  if (!is_bearer) return std::string_view();
  authorization.remove_prefix(kScheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  return authorization;
}

bool came_by_proxy(const Request& request) {
  return request.fields.contains("forwarded") || request.fields.contains("x-forwarded-for") ||
         request.fields.contains("via");
}

}  // namespace

class Gate::State {
 public:
  explicit State(GateOptions given)
      : options_(std::move(given)),
        clock_(options_.clock != nullptr ? *options_.clock : platform::real_clock()),
        failures_(options_.failures, options_.failure_forgotten, options_.addresses) {}

  Status load() {
    std::lock_guard lock(reload_);
    return load_if_changed(true);
  }

  Admission admit(const Request& request, Scope wanted) {
    look();
    const platform::Instant now = clock_.now();
    const std::optional<std::string_view> shown = shown_secret(request);
    // The same for every request, whatever was shown.
    const bool fits = shown && shown->size() == kTokenCharacters && shown->starts_with(kTokenPrefix);
    const TokenDigest digest = digest_of(fits ? *shown : kNoSecret);
    const std::shared_ptr<const TokenList> tokens = current();
    const Token* const token = find_token(*tokens, digest);

    if (token != nullptr && token->is_good_at(wall(now))) {
      const Identity caller = {.name = token->name, .scopes = token->scopes};
      if (caller.may(wanted)) return caller;
      return wire::make_problem("forbidden", "this token lacks the scope " + std::string(to_string(wanted)) +
                                                 "; it has " + scopes_text(token->scopes));
    }
    if (!shown && options_.local_without_token && is_local(request.peer) && !came_by_proxy(request)) {
      return Identity{.name = std::string(kLocal), .scopes = kAllScopes};
    }
    if (wanted == Scope::kNone) return Identity{};
    const Milliseconds wait = failures_.fail(address_group(request.peer), now.elapsed_us);
    if (wait.count() > 0) {
      wire::Problem problem = wire::make_problem("rate_limited", "too many requests without a valid token");
      problem.retry_after = wait;
      return problem;
    }
    return wire::make_problem("unauthorized",
                              "a valid token is needed, as Authorization: Bearer TOKEN; bide token create makes one");
  }

  bool has_tokens() {
    look();
    const Time now = wall(clock_.now());
    const std::shared_ptr<const TokenList> tokens = current();
    return std::any_of(tokens->begin(), tokens->end(), [&](const Token& token) { return token.is_good_at(now); });
  }

 private:
  static Time wall(const platform::Instant& now) { return Time(Milliseconds(now.wall_us / 1000)); }

  std::shared_ptr<const TokenList> current() const {
    std::shared_lock lock(mutex_);
    return tokens_;
  }

  // Of several requests at once one looks, and the others go on with what is known.
  void look() {
    const std::int64_t now_us = clock_.now().elapsed_us;
    if (options_.token_file.empty() || now_us < look_at_us_.load(std::memory_order_relaxed)) return;
    std::unique_lock lock(reload_, std::try_to_lock);
    if (!lock) return;
    look_at_us_.store(now_us + kLookEveryUs, std::memory_order_relaxed);
    const Status loaded = load_if_changed(false);
    // Kept are the tokens of before: half a file must not lock everybody out.
    if (!loaded) tell("the tokens of before stay in force: " + loaded.error().message);
  }

  Status load_if_changed(bool first) {
    if (options_.token_file.empty()) return {};
    const FileStamp stamp = stamp_of(options_.token_file);
    if (!first && stamp == stamp_) return {};
    stamp_ = stamp;
    Result<TokenList> read = read_tokens(options_.token_file);
    if (!read) return read.error();
    const std::size_t count = read->size();
    {
      std::unique_lock lock(mutex_);
      tokens_ = std::make_shared<const TokenList>(std::move(*read));
    }
    if (!first) tell("read " + std::to_string(count) + " tokens from " + options_.token_file);
    return {};
  }

  void tell(const std::string& text) const {
    if (options_.on_reload) options_.on_reload(text);
  }

  const GateOptions options_;
  platform::Clock& clock_;
  FailureLimit failures_;
  std::atomic<std::int64_t> look_at_us_ = 0;

  std::mutex reload_;  // Guards stamp_; held while the file is read.
  FileStamp stamp_;

  mutable std::shared_mutex mutex_;  // Guards everything below.
  std::shared_ptr<const TokenList> tokens_ = std::make_shared<const TokenList>();
};

Result<std::unique_ptr<Gate>> Gate::open(GateOptions options) {
  auto state = std::make_unique<State>(std::move(options));
  if (const Status loaded = state->load(); !loaded) return loaded.error();
  return std::unique_ptr<Gate>(new Gate(std::move(state)));
}

Gate::Gate(std::unique_ptr<State> state) : state_(std::move(state)) {}
Gate::~Gate() = default;

Admission Gate::admit(const Request& request, Scope wanted) { return state_->admit(request, wanted); }
bool Gate::has_tokens() const { return state_->has_tokens(); }

}  // namespace bide::server
