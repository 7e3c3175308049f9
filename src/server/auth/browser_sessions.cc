#include "server/auth/browser_sessions.h"

#include <algorithm>
#include <utility>

namespace bide::server {
namespace {

constexpr std::int64_t kIdleUs = BrowserSessions::kIdle.count() * 1'000;

// "a=1; b=2". Empty: there is no such cookie.
std::string_view cookie_of(const Request& request, std::string_view name) {
  std::string_view cookies = request.field("cookie");
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=') return one.substr(name.size() + 1);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
  }
  return {};
}

}  // namespace

std::string BrowserSessions::cookie_name(const Request& request) {
  const std::string_view host = request.field("host");
  const std::size_t colon = host.rfind(':');
  std::string name = "bide_session";
  if (colon == std::string_view::npos || host.ends_with(']')) return name;
  const std::string_view port = host.substr(colon + 1);
  if (port.empty() || port.find_first_not_of("0123456789") != std::string_view::npos) return name;
  return name.append("_").append(port);
}

template <class Wanted>
void BrowserSessions::make_room(std::size_t most, Wanted&& wanted) {
  std::size_t count = 0;
  auto oldest = sessions_.end();
  for (auto each = sessions_.begin(); each != sessions_.end(); ++each) {
    if (!wanted(each->second.session)) continue;
    count += 1;
    if (oldest == sessions_.end() || each->second.used_us < oldest->second.used_us) oldest = each;
  }
  if (count >= most) sessions_.erase(oldest);
}

std::string BrowserSessions::open(Session session) {
  std::string secret = make_token_secret();
  const std::int64_t now_us = clock_.now().elapsed_us;
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [&](const auto& each) { return each.second.used_us + kIdleUs < now_us; });
  // Whoever signs in again and again signs out nobody but themselves.
  make_room(kMostOfAToken, [&](const Session& other) { return other.by_link == session.by_link && other.token == session.token; });
  make_room(kMost, [](const Session&) { return true; });
  sessions_[digest_of(secret)] = {std::move(session), now_us};
  return secret;
}

std::optional<BrowserSessions::Session> BrowserSessions::find(const Request& request) {
  const std::string_view secret = cookie_of(request, cookie_name(request));
  if (secret.size() != kTokenCharacters) return std::nullopt;
  const TokenDigest digest = digest_of(secret);
  const std::int64_t now_us = clock_.now().elapsed_us;
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(digest);
  if (found == sessions_.end()) return std::nullopt;
  if (found->second.used_us + kIdleUs < now_us) {
    sessions_.erase(found);
    return std::nullopt;
  }
  found->second.used_us = now_us;
  return found->second.session;
}

void BrowserSessions::close(const Request& request) {
  const TokenDigest digest = digest_of(cookie_of(request, cookie_name(request)));
  const std::lock_guard lock(mutex_);
  sessions_.erase(digest);
}

std::string BrowserSessions::make_link_code() {
  std::string code = make_token_secret();
  const std::lock_guard lock(mutex_);
  link_ = digest_of(code);
  link_until_us_ = clock_.now().elapsed_us + kLinkTime.count() * 1'000;
  return code;
}

bool BrowserSessions::take_link_code(std::string_view code) {
  const TokenDigest digest = digest_of(code);
  const std::lock_guard lock(mutex_);
  if (!link_ || !same_digest(*link_, digest) || clock_.now().elapsed_us > link_until_us_) return false;
  link_.reset();
  return true;
}

}  // namespace bide::server
