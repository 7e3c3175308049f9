#include "server/http/router.h"

#include <algorithm>
#include <utility>

#include "core/did_you_mean.h"
#include "core/quote.h"
#include "platform/fatal.h"
#include "server/http/request_head.h"

namespace bide::server {

namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> segments;
  path.remove_prefix(1);
  for (;;) {
    const std::size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

bool is_capture(std::string_view segment) { return segment.starts_with('{') && segment.ends_with('}'); }
// "{rest...}", last in a pattern: everything from here on, slashes too.
bool is_rest(std::string_view segment) { return is_capture(segment) && segment.ends_with("...}"); }

bool matches(const std::vector<std::string_view>& pattern, const std::vector<std::string_view>& path) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (i == path.size()) return false;
    if (is_rest(pattern[i])) return true;
    if (is_capture(pattern[i]) ? path[i].empty() : pattern[i] != path[i]) return false;
  }
  return pattern.size() == path.size();
}

// Of two patterns that match, the one with more words of its own.
std::size_t words(const std::vector<std::string_view>& pattern) {
  return static_cast<std::size_t>(std::count_if(pattern.begin(), pattern.end(), [](auto s) { return !is_capture(s); }));
}

}  // namespace

Router::Router(Routes routes) : routes_(std::move(routes)) {
  for (const Route& route : routes_) {
    platform::require(route.pattern.starts_with('/'), "a route's pattern begins with a slash");
    platform::require(std::count_if(routes_.begin(), routes_.end(),
                                    [&](const Route& other) {
                                      return other.method == route.method && other.pattern == route.pattern;
                                    }) == 1,
                      "no two routes have the same method and pattern");
    patterns_.push_back(split(route.pattern));
  }
}

Router::Match Router::find(Method method, std::string_view path) const {
  Match match;
  if (path == "*") {
    match.allow = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    return match;
  }
  const Segments segments = split(path);
  const Method wanted = method == Method::kHead ? Method::kGet : method;
  std::size_t best = routes_.size();
  std::size_t nearest = routes_.size();  // By path alone.
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (!matches(patterns_[i], segments)) continue;
    if (nearest == routes_.size() || words(patterns_[i]) > words(patterns_[nearest])) nearest = i;
    if (routes_[i].method == wanted && (best == routes_.size() || words(patterns_[i]) > words(patterns_[best]))) best = i;
  }
  if (nearest == routes_.size()) {
    match.problem = not_found(path);
    return match;
  }
  if (best != routes_.size() && words(patterns_[best]) == words(patterns_[nearest])) {
    match.route = &routes_[best];
    for (std::size_t i = 0; i < patterns_[best].size(); ++i) {
      const std::string_view name = patterns_[best][i];
      if (!is_capture(name)) continue;
      const bool rest = is_rest(name);
      const auto from = static_cast<std::size_t>(segments[i].data() - path.data());
      // The path was seen to decode.
      percent_decode(rest ? path.substr(from) : segments[i], false,
                     match.captured[std::string(name.substr(1, name.size() - (rest ? 5 : 2)))]);
    }
    return match;
  }
  for (const Route& route : routes_) {
    const auto at = static_cast<std::size_t>(&route - routes_.data());
    if (!matches(patterns_[at], segments) || words(patterns_[at]) != words(patterns_[nearest])) continue;
    match.allow += std::string(to_string(route.method)) + ", ";
    if (route.method == Method::kGet) match.allow += "HEAD, ";
  }
  match.allow += "OPTIONS";
  match.problem = {.status = 405,
                   .code = "method_not_allowed",
                   .detail = core::quoted(path) + " does not answer " +
                             (method == Method::kOther ? "this method" : std::string(to_string(method))) +
                             ", only " + match.allow};
  return match;
}

wire::Problem Router::not_found(std::string_view path) const {
  std::vector<std::string_view> words;
  for (const Route& route : routes_) words.push_back(route.pattern);
  std::string hint = core::did_you_mean(path, words);
  if (hint.empty()) {
    // Nothing is near as a whole: the route that begins most alike.
    std::size_t alike = 1;
    std::string_view best;
    for (const std::string_view word : words) {
      const auto differ = std::mismatch(word.begin(), word.end(), path.begin(), path.end()).first;
      const auto same = static_cast<std::size_t>(differ - word.begin());
      if (same > alike) {
        alike = same;
        best = word;
      }
    }
    hint = best.empty() ? "; the API is described at /v1/openapi.json" : "; did you mean '" + std::string(best) + "'?";
  }
  return {.status = 404, .code = "no_such_route", .detail = "there is nothing at " + core::quoted(path) + hint};
}

}  // namespace bide::server
