#include "server/http/service.h"

#include <string_view>
#include <utility>
#include <variant>

#include "core/quote.h"

namespace bide::server {

namespace {

using wire::Problem;

Response no_route(const Request& request, const Router::Match& match) {
  if (request.method == Method::kOptions && !match.allow.empty()) {
    return {.status = 204, .fields = {{"Allow", match.allow}}};
  }
  Response response = to_response(match.problem);
  if (match.problem.status == 405) response.fields.emplace_back("Allow", match.allow);
  return response;
}

std::optional<Response> find_refusal(const Service& service, const Route& route, Request& request, bool has_body) {
  const bool is_open = route.scope == Scope::kNone && (route.method == Method::kGet || route.method == Method::kHead);
  if (!is_open) {
    if (const auto problem = service.browsers.check(request)) return to_response(*problem);
  }
  if (service.admit) {
    auto admitted = service.admit(request, route.scope);
    if (const Problem* problem = std::get_if<Problem>(&admitted)) return to_response(*problem);
    request.caller = std::move(std::get<Identity>(admitted));
    if (request.caller.is_restricted() && route.scope != Scope::kNone && !route.keeps_to_queues) {
      return to_response(wire::make_problem("forbidden", "this token is restricted to queues, and this is about all"));
    }
  } else {
    request.caller = {.name = "local", .scopes = 0xff};
  }
  if (const std::string_view expected = request.field("expect"); !expected.empty() && !is_same_text(expected, "100-continue")) {
    return to_response({.status = 417,
                        .code = "expectation_failed",
                        .detail = "Expect: " + core::quoted(expected) + " is not known, only 100-continue"});
  }
  if (has_body && route.most_body_bytes(service.limits) == 0) {
    return to_response({.status = 413,
                        .code = "body_too_large",
                        .detail = std::string(to_string(request.method)) + " " + std::string(route.pattern) + " takes no body"});
  }
  const std::string_view coding = request.field("content-encoding");
  if (is_same_text(coding, "identity")) {
    request.fields.erase("content-encoding");
  } else if (!coding.empty() && !is_same_text(coding, "gzip") && !is_same_text(coding, "x-gzip")) {
    Response response = to_response({.status = 415,
                                     .code = "unsupported_media_type",
                                     .detail = "the Content-Encoding " + core::quoted(coding) + " is not gzip"});
    response.fields.emplace_back("Accept-Encoding", "gzip");
    return response;
  }
  return std::nullopt;
}

}  // namespace

Admission admit_request(const Service& service, Request& request, bool has_body) {
  Router::Match match = service.router.find(request.method, request.path);
  if (match.route == nullptr) return {.refusal = no_route(request, match)};
  request.captured = std::move(match.captured);
  return {match.route, find_refusal(service, *match.route, request, has_body)};
}

}  // namespace bide::server
