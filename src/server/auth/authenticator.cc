#include "server/auth/authenticator.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "core/text.h"
#include "server/auth/browser_sessions.h"
#include "server/auth/failure_limiter.h"
#include "server/auth/token_file.h"
#include "server/http/identity.h"

namespace bide::server {
namespace {

constexpr std::int64_t kCheckEveryUs = 1'000'000;
constexpr std::string_view kLocal = "local";
constexpr std::string_view kLink = "link";

// Of the length of a secret, and no secret: hashed in place of what cannot be one, so that it takes as long.
constexpr std::string_view kNoSecret = "bide-no-secret-has-this-form-but-it-is-as-long--";
static_assert(kNoSecret.size() == kTokenCharacters);

// What stands after "Bearer "; nothing when there is no such field. RFC 9110: the scheme in either case.
std::optional<std::string_view> shown_secret(const Request& request) {
  constexpr std::string_view kScheme = "bearer";
  const auto field = request.fields.find("authorization");
  if (field == request.fields.end()) return std::nullopt;
  std::string_view authorization = field->second;
  const bool is_bearer = core::lower_case(authorization.substr(0, kScheme.size())) == kScheme &&
                         authorization.substr(kScheme.size()).starts_with(' ');
  if (!is_bearer) return std::string_view();
  authorization.remove_prefix(kScheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  return authorization;
}

// Browsers say where a change comes from, and the BrowserGuard has looked at it. Whoever says nothing is no browser of today, and
// must not use a cookie that one sends by itself.
bool is_asked_by_our_page(const Request& request) {
  const bool changes = request.method != Method::kGet && request.method != Method::kHead && request.method != Method::kOptions;
  return !changes || !request.field("sec-fetch-site").empty() || !request.field("origin").empty();
}

bool came_by_proxy(const Request& request) {
  return std::any_of(request.fields.begin(), request.fields.end(), [](const auto& field) {
    const std::string& name = field.first;
    return name == "forwarded" || name == "via" || name == "x-real-ip" || name.starts_with("x-forwarded-") ||
           name.ends_with("-client-ip") || name.ends_with("-connecting-ip");
  });
}

// The name under which we were asked is one that only this machine has. HTTP/1.0 knows no such names.
bool is_asked_locally(const Request& request) {
  if (request.peer == "unix") return true;
  const auto field = request.fields.find("host");
  std::string_view host = field == request.fields.end() ? std::string_view() : std::string_view(field->second);
  if (host.starts_with('[')) {
    host = host.substr(1, host.find(']') == std::string_view::npos ? 0 : host.find(']') - 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  return host == "localhost" || host.ends_with(".localhost") || (host != "unix" && is_local(host));
}

}  // namespace

class Authenticator::State {
 public:
  explicit State(AuthenticatorOptions given)
      : options_(std::move(given)),
        clock_(options_.clock != nullptr ? *options_.clock : platform::real_clock()),
        sessions_(clock_),
        failures_(options_.failures, options_.failure_forgotten, options_.addresses) {}

  Status load() {
    std::lock_guard lock(reload_);
    const Status loaded = load_if_changed(true);
    good_ = good_tokens();
    return loaded;
  }

  AuthResult admit(const Request& request, Scope wanted) {
    reload_if_due();
    const platform::Instant now = clock_.now();
    const std::optional<std::string_view> shown = shown_secret(request);
    std::optional<BrowserSessions::Session> session;
    if (!shown) session = sessions_.find(request);
    // The same for every request, whatever was shown.
    const bool fits = shown && shown->size() == kTokenCharacters && shown->starts_with(kTokenPrefix);
    const TokenDigest digest = session && !session->by_link ? session->token : digest_of(fits ? *shown : kNoSecret);
    const std::shared_ptr<const TokenList> tokens = current();
    const Token* const token = find_token(*tokens, digest);

    if (session && !is_asked_by_our_page(request)) {
      return wire::make_problem("forbidden", "a browser that has signed in changes something by our own page only");
    }
    if (session && session->by_link) return Identity{.name = std::string(kLink), .scopes = kAllScopes};
    if (token != nullptr && token->is_good_at(wall(now))) {
      const Identity caller = {.name = token->name,
                               .scopes = token->scopes,
                               .queues = token->queues,
                               .has_token = true,
                               .token = number_of(*token)};
      if (caller.may(wanted)) return caller;
      report_refusal(request, "lacks the scope " + std::string(to_string(wanted)), token->name, now);
      return wire::make_problem("forbidden", "this token lacks the scope " + std::string(to_string(wanted)) +
                                                 "; it has " + scopes_text(token->scopes));
    }
    if (const auto lease = shown && options_.lease_of ? options_.lease_of(*shown) : std::nullopt) {
      const Identity caller = {.name = "lease of " + lease->id.to_string(),
                               .scopes = static_cast<std::uint8_t>(Scope::kSettle),
                               .lease = *lease};
      if (caller.may(wanted)) return caller;
      return wire::make_problem("forbidden", "this credential is for settling and extending one lease only");
    }
    const bool is_here = !shown && !session && options_.local_without_token && is_local(request.peer);
    if (is_here && request.peer_is_our_user && is_asked_locally(request) && !came_by_proxy(request)) {
      return Identity{.name = std::string(kLocal), .scopes = kAllScopes};
    }
    if (wanted == Scope::kNone) return Identity{};
    report_refusal(request, !shown ? "no token" : token == nullptr ? "an unknown token" : "an expired token",
                 token == nullptr ? "" : token->name, now);
    const Milliseconds wait = failures_.fail(address_group(request.peer), now.elapsed_us);
    if (wait.count() > 0) {
      wire::Problem problem = wire::make_problem("rate_limited", "too many requests without a valid token");
      problem.retry_after = wait;
      return problem;
    }
    if (is_here) {
      return wire::make_problem("unauthorized",
                                "without a token only processes of the server's own user are let in, under an address "
                                "of this machine, and nobody for whom a proxy speaks; bide token create makes one");
    }
    return wire::make_problem("unauthorized",
                              "a valid token is needed, as Authorization: Bearer TOKEN; bide token create makes one");
  }

  std::variant<std::string, wire::Problem> sign_in(Request request, std::string_view token) {
    request.fields["authorization"] = "Bearer " + std::string(token);
    auto admitted = admit(request, Scope::kRead);
    if (const auto* problem = std::get_if<wire::Problem>(&admitted)) return *problem;
    return sessions_.open({.token = digest_of(token)});
  }

  std::variant<std::string, wire::Problem> sign_in_by_link(const Request& request, std::string_view code) {
    const platform::Instant now = clock_.now();
    if (sessions_.take_link_code(code)) return sessions_.open({.by_link = true});
    report_refusal(request, "a link that was used, or is too old", "", now);
    const Milliseconds wait = failures_.fail(address_group(request.peer), now.elapsed_us);
    wire::Problem problem = wire::make_problem(
        wait.count() > 0 ? "rate_limited" : "unauthorized", "this link was used before, or is too old; sign in with a token");
    problem.retry_after = wait;
    return problem;
  }

  BrowserSessions& sessions() { return sessions_; }

  bool is_still_valid(const Identity& caller) {
    if (!caller.has_token) return true;
    const Time now = wall(clock_.now());
    const std::shared_ptr<const TokenList> tokens = current();
    return std::any_of(tokens->begin(), tokens->end(), [&](const Token& token) {
      return number_of(token) == caller.token && token.name == caller.name && token.scopes == caller.scopes &&
             token.queues == caller.queues && token.is_good_at(now);
    });
  }

  std::uint64_t version() {
    reload_if_due();
    return version_;
  }

  bool has_tokens() {
    reload_if_due();
    return good_tokens() > 0;
  }

 private:
  static Time wall(const platform::Instant& now) { return Time(Milliseconds(now.wall_us / 1000)); }

  // Of the digest, so that a token that is made anew under the same name is another one.
  static std::uint64_t number_of(const Token& token) {
    std::uint64_t number = 0;
    std::memcpy(&number, token.digest.data(), sizeof number);
    return number;
  }

  std::ptrdiff_t good_tokens() const {
    const Time now = wall(clock_.now());
    const std::shared_ptr<const TokenList> tokens = current();
    return std::count_if(tokens->begin(), tokens->end(), [&](const Token& token) { return token.is_good_at(now); });
  }

  std::shared_ptr<const TokenList> current() const {
    std::shared_lock lock(mutex_);
    return tokens_;
  }

  // Of several requests at once one reads the file, and the others go on with the tokens of before.
  void reload_if_due() {
    const std::int64_t now_us = clock_.now().elapsed_us;
    if (options_.token_file.empty() || now_us < next_check_us_.load(std::memory_order_relaxed)) return;
    std::unique_lock lock(reload_, std::try_to_lock);
    if (!lock) return;
    next_check_us_.store(now_us + kCheckEveryUs, std::memory_order_relaxed);
    const Status loaded = load_if_changed(false);
    // Kept are the tokens of before: half a file must not lock everybody out.
    if (!loaded) report("the tokens of before stay in force: " + loaded.error().message);
    const auto good = good_tokens();
    if (std::exchange(good_, good) != good) ++version_;  // One has expired.
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
    ++version_;
    if (!first) report("read " + std::to_string(count) + " tokens from " + options_.token_file);
    return {};
  }

  // Limited, since anybody can be refused: nobody may fill the log.
  void report_refusal(const Request& request, std::string_view why, std::string_view name, const platform::Instant& now) {
    if (!options_.on_refused) return;
    std::uint64_t unlogged = 0;
    {
      std::lock_guard lock(refusals_);
      const std::int64_t second = now.elapsed_us / 1'000'000;
      if (second != refusal_second_) reported_refusals_ = 0;
      refusal_second_ = second;
      if (reported_refusals_ >= options_.refusals_a_second) {
        ++unlogged_refusals_;
        return;
      }
      ++reported_refusals_;
      unlogged = std::exchange(unlogged_refusals_, 0);
    }
    options_.on_refused({.peer = request.peer,
                         .method = request.method,
                         .path = request.path,
                         .why = why,
                         .caller = name,
                         .unlogged = unlogged});
  }

  void report(const std::string& text) const {
    if (options_.on_reload) options_.on_reload(text);
  }

  const AuthenticatorOptions options_;
  platform::Clock& clock_;
  BrowserSessions sessions_;
  FailureLimiter failures_;
  std::atomic<std::int64_t> next_check_us_ = 0;
  std::atomic<std::uint64_t> version_ = 0;

  std::mutex refusals_;  // Guards these:
  std::int64_t refusal_second_ = -1;
  int reported_refusals_ = 0;
  std::uint64_t unlogged_refusals_ = 0;

  std::mutex reload_;  // Guards these; held while the file is read.
  FileStamp stamp_;
  std::ptrdiff_t good_ = 0;  // Tokens, when it was looked last.

  mutable std::shared_mutex mutex_;  // Guards everything below.
  std::shared_ptr<const TokenList> tokens_ = std::make_shared<const TokenList>();
};

Result<std::unique_ptr<Authenticator>> Authenticator::open(AuthenticatorOptions options) {
  auto state = std::make_unique<State>(std::move(options));
  if (const Status loaded = state->load(); !loaded) return loaded.error();
  return std::unique_ptr<Authenticator>(new Authenticator(std::move(state)));
}

Authenticator::Authenticator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Authenticator::~Authenticator() = default;

AuthResult Authenticator::admit(const Request& request, Scope wanted) { return state_->admit(request, wanted); }
std::variant<std::string, wire::Problem> Authenticator::sign_in(const Request& request, std::string_view token) {
  return state_->sign_in(request, token);
}
std::variant<std::string, wire::Problem> Authenticator::sign_in_by_link(const Request& request, std::string_view code) {
  return state_->sign_in_by_link(request, code);
}
void Authenticator::sign_out(const Request& request) { state_->sessions().close(request); }
std::string Authenticator::make_link_code() { return state_->sessions().make_link_code(); }
bool Authenticator::is_still_valid(const Identity& caller) const { return state_->is_still_valid(caller); }
std::uint64_t Authenticator::version() const { return state_->version(); }
bool Authenticator::has_tokens() const { return state_->has_tokens(); }

}  // namespace bide::server
