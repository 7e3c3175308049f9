#include "server/dashboard/dashboard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/quote.h"
#include "core/url_escape.h"
#include "server/auth/browser_sessions.h"
#include "server/dashboard/assets.h"
#include "server/http/content_coding.h"
#include "wire/dashboard_json.h"
#include "wire/json_reader.h"
#include "wire/problem.h"

namespace bide::server {

struct Dashboard::State {
  DashboardOptions options;
  platform::Clock& clock;
  Time started;

  Time now() const { return Time(Milliseconds(clock.now().wall_us / 1000)); }
};

namespace {

using metrics::HistoryStep;
using metrics::JobEventKind;
using metrics::JobHistory;

// Scripts, styles and pictures of our own, and nothing else: a text of a job that got into the page as markup would still not
// run. No other page shows ours in a frame.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

// Addresses of the one page: which of its views to show is for its script to see.
constexpr auto kPages = std::to_array<std::string_view>(
    {"/", "/queues", "/queues/{name}", "/jobs", "/jobs/{id}", "/flows/{id}", "/schedules", "/schedules/{name}", "/dead", "/workers",
     "/callbacks", "/enqueue", "/about"});

std::string unzipped(std::string_view bytes) {
  std::string text;
  Gunzip gunzip;
  gunzip.push(bytes, [&text](std::string_view piece) {
    text += piece;
    return true;
  });
  return text;
}

Response asset_response(const Asset& asset, const Request& request) {
  Response response{.status = 200, .content_type = std::string(asset.content_type)};
  const bool is_page = asset.path == "/";
  response.fields = {{"Cache-Control", is_page ? "no-cache" : "public, max-age=31536000, immutable"},
                     {"Content-Security-Policy", std::string(kPolicy)},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cross-Origin-Opener-Policy", "same-origin"},
                     {"Cross-Origin-Resource-Policy", "same-origin"}};
  if (accepts_gzip(request.field("accept-encoding"))) {
    response.body = asset.gzip;
    response.fields.emplace_back("Content-Encoding", "gzip");
  } else {
    response.body = unzipped(asset.gzip);
  }
  return response;
}

Response json(std::string body) {
  return {.status = 200, .content_type = "application/json", .body = std::move(body)};
}

// ---- Counts over time.

struct WindowName {
  std::string_view name;
  Milliseconds step;
  std::size_t steps;
};
constexpr auto kWindows = std::to_array<WindowName>({
    {"hour", JobHistory::kFineStep, 360},
    {"day", JobHistory::kCoarseStep, 288},
    {"week", 6 * JobHistory::kCoarseStep, 336},
});

std::optional<double> rounded(std::optional<double> ms) {
  if (ms) ms = *ms < 10 ? std::round(*ms * 10) / 10 : std::round(*ms);
  return ms;
}

wire::StatsSum sum_of(std::string name, const HistoryStep& total) {
  return {.name = std::move(name),
          .enqueued = total.count(JobEventKind::kEnqueued),
          .started = total.count(JobEventKind::kStarted),
          .done = total.count(JobEventKind::kDone),
          .failed = total.count(JobEventKind::kFailed),
          .dead = total.count(JobEventKind::kDead),
          .p50 = rounded(total.lateness_ms(0.5)),
          .p95 = rounded(total.lateness_ms(0.95)),
          .p99 = rounded(total.lateness_ms(0.99))};
}

wire::StatsColumns columns_of(const std::vector<HistoryStep>& steps) {
  wire::StatsColumns columns;
  for (const HistoryStep& step : steps) {
    columns.enqueued.push_back(step.count(JobEventKind::kEnqueued));
    columns.started.push_back(step.count(JobEventKind::kStarted));
    columns.done.push_back(step.count(JobEventKind::kDone));
    columns.failed.push_back(step.count(JobEventKind::kFailed));
    columns.dead.push_back(step.count(JobEventKind::kDead));
    columns.p50.push_back(rounded(step.lateness_ms(0.5)));
    columns.p95.push_back(rounded(step.lateness_ms(0.95)));
    columns.p99.push_back(rounded(step.lateness_ms(0.99)));
  }
  return columns;
}

std::vector<wire::StatsSum> sums_of(const std::vector<JobHistory::Sum>& sums, const Identity* caller) {
  std::vector<wire::StatsSum> all;
  for (const JobHistory::Sum& sum : sums) {
    if (caller == nullptr || caller->may_use(sum.name)) all.push_back(sum_of(sum.name, sum.total));
  }
  return all;
}

std::string_view parameter(const Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<wire::Problem> find_parameter_problem(const Request& request, const std::vector<std::string_view>& known) {
  for (const auto& [name, value] : request.query) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return wire::make_problem("unknown_parameter", "unknown parameter " + core::quoted(name), name);
    }
  }
  return std::nullopt;
}

std::variant<wire::Stats, wire::Problem> stats_for(const JobHistory& history, const Request& request, Time now) {
  if (auto problem = find_parameter_problem(request, {"window", "queue", "kind"})) return *problem;
  const std::string_view wanted = request.query.contains("window") ? parameter(request, "window") : "hour";
  const auto window =
      std::find_if(kWindows.begin(), kWindows.end(), [&](const WindowName& each) { return each.name == wanted; });
  if (window == kWindows.end()) {
    return wire::make_problem("invalid_parameter", "window is hour, day or week, not " + core::quoted(wanted), "window");
  }
  const std::string_view queue = parameter(request, "queue");
  const std::string_view kind = parameter(request, "kind");
  if (!queue.empty() && !kind.empty()) {
    return wire::make_problem("invalid_parameter", "either a queue or a kind, not both", "kind");
  }
  const Identity& caller = request.caller;
  if (caller.is_restricted() && (queue.empty() || !caller.may_use(queue))) {
    return wire::make_problem("forbidden", "this token is restricted to queues: name one of them with ?queue=");
  }
  const JobHistory::Window read{window->step, window->steps, now};
  const JobHistory::Reading reading = !queue.empty()  ? history.read_queue(queue, read)
                                      : !kind.empty() ? history.read_kind(kind, read)
                                                      : history.read(read);
  HistoryStep total;
  for (const HistoryStep& step : reading.steps) total.add(step);
  return wire::Stats{.from = reading.from,
                     .step = window->step,
                     .steps = columns_of(reading.steps),
                     .total = sum_of(std::string(queue.empty() ? kind : queue), total),
                     .queues = sums_of(history.queues(read), &caller),
                     // Kinds are of all queues together.
                     .kinds = caller.is_restricted() ? std::vector<wire::StatsSum>() : sums_of(history.kinds(read), nullptr)};
}

// ---- Signing in.

wire::SessionInfo session_info(const Request& request) {
  wire::SessionInfo info{.signed_in = request.caller.may(Scope::kRead),
                         .name = request.caller.name,
                         .queues = request.caller.queues,
                         .by_cookie = request.caller.is_known() && request.field("authorization").empty() &&
                                      request.caller.name != "local"};
  for (const Scope scope : {Scope::kRead, Scope::kWrite, Scope::kWork, Scope::kAdmin}) {
    if (request.caller.may(scope)) info.scopes.emplace_back(to_string(scope));
  }
  return info;
}

struct SignIn {
  std::string token = {};
  std::string link = {};
};

std::optional<wire::Problem> read_sign_in(std::string_view body, SignIn& out) {
  wire::JsonReader in(body);
  in.object();
  while (const auto name = in.field()) {
    if (*name == "token") {
      out.token = in.string();
    } else if (*name == "link") {
      out.link = in.string();
    } else {
      return wire::make_problem("unknown_field", "unknown field " + core::quoted(*name), std::string(*name));
    }
  }
  in.end();
  if (!in.ok()) return wire::problem_of(in.fault());
  if (out.token.empty() == out.link.empty()) return wire::make_problem("missing_field", "either a token or a link", "token");
  return std::nullopt;
}

std::string cookie(const Request& request, std::string_view secret, bool secure) {
  std::string text = BrowserSessions::cookie_name(request) + "=" + std::string(secret);
  text += "; Path=/; HttpOnly; SameSite=Strict";
  if (secure) text += "; Secure";
  if (secret.empty()) text += "; Max-Age=0";
  return text;
}

}  // namespace

Dashboard::Dashboard(DashboardOptions options) {
  platform::Clock& clock = options.clock != nullptr ? *options.clock : platform::real_clock();
  const Time started(Milliseconds(clock.now().wall_us / 1000));
  options.broker_url = core::without_secrets(options.broker_url);
  state_ = std::make_shared<const State>(State{std::move(options), clock, started});
}

Routes Dashboard::pages() const {
  Routes routes;
  const auto add = [&routes](std::string_view pattern, const Asset& asset) {
    routes.push_back({.pattern = pattern, .scope = Scope::kNone, .summary = "The dashboard",
                      .answer = [&asset](const Request& request, Reply reply) { reply.send(asset_response(asset, request)); }});
  };
  for (const std::string_view page : kPages) add(page, kAssets.front());
  for (const Asset& asset : kAssets) {
    if (asset.path != "/") add(asset.path, asset);
  }
  return routes;
}

Routes Dashboard::routes() const {
  Routes routes;
  routes.push_back({.pattern = "/v1/stats", .scope = Scope::kRead, .summary = "What became of jobs over time",
                    .answer =
                        [state = state_](const Request& request, Reply reply) {
                          const auto stats = stats_for(state->options.broker->history(), request, state->now());
                          if (const auto* problem = std::get_if<wire::Problem>(&stats)) return reply.send(to_response(*problem));
                          reply.send(json(wire::stats_json(std::get<wire::Stats>(stats))));
                        },
                    .keeps_to_queues = true,
                    .operation = {.id = "getStats", .answers = {{200, "Stats"}}, .query = {"window", "queue", "kind"}}});
  routes.push_back({.pattern = "/v1/workers", .scope = Scope::kRead, .summary = "Who takes jobs through this server",
                    .answer =
                        [state = state_](const Request&, Reply reply) {
                          std::vector<wire::WorkerInfo> workers;
                          for (metrics::WorkerCounts& each : state->options.broker->workers().list()) {
                            workers.push_back({.name = std::move(each.name),
                                               .queues = std::move(each.queues),
                                               .connected = each.subscriptions > 0,
                                               .running = each.running,
                                               .started = each.started,
                                               .done = each.done,
                                               .failed = each.failed,
                                               .since = each.since,
                                               .last_start = each.last_start});
                          }
                          reply.send(json(wire::workers_json(workers)));
                        },
                    .operation = {.id = "listWorkers", .answers = {{200, "Workers"}}}});
  routes.push_back({.pattern = "/v1/about", .scope = Scope::kRead, .summary = "This server, and the broker behind it",
                    .answer =
                        [state = state_](const Request&, Reply reply) {
                          const DashboardOptions& options = state->options;
                          reply.send(json(wire::about_json({.version = options.version,
                                                            .broker = options.broker_url,
                                                            .durability = options.durability,
                                                            .started = state->started})));
                        },
                    .operation = {.id = "getAbout", .answers = {{200, "About"}}}});
  routes.push_back({.pattern = "/v1/session", .scope = Scope::kNone, .summary = "Who asks, and what they may do",
                    .answer = [](const Request& request,
                                 Reply reply) { reply.send(json(wire::session_json(session_info(request)))); },
                    .operation = {.id = "getSession", .answers = {{200, "Session"}}}});
  routes.push_back({.method = Method::kPost, .pattern = "/v1/session", .scope = Scope::kNone,
                    .summary = "Sign a browser in, by a cookie",
                    .answer =
                        [state = state_](Request request, Reply reply) {
                          SignIn wanted;
                          if (auto problem = read_sign_in(request.body, wanted)) return reply.send(to_response(*problem));
                          Authenticator* const authenticator = state->options.authenticator;
                          if (authenticator == nullptr) {
                            return reply.send(to_response(wire::make_problem("unsupported", "nobody has to sign in here")));
                          }
                          auto secret = wanted.token.empty() ? authenticator->sign_in_by_link(request, wanted.link)
                                                             : authenticator->sign_in(request, wanted.token);
                          if (auto* problem = std::get_if<wire::Problem>(&secret)) return reply.send(to_response(*problem));
                          const std::string& kept = std::get<std::string>(secret);
                          // As whom: by the cookie that the next request will have.
                          request.fields["cookie"] = BrowserSessions::cookie_name(request) + "=" + kept;
                          request.fields["sec-fetch-site"] = "same-origin";
                          auto caller = authenticator->admit(request, Scope::kNone);
                          if (auto* identity = std::get_if<Identity>(&caller)) request.caller = std::move(*identity);
                          if (state->options.on_signed_in) state->options.on_signed_in(request.caller, request);
                          Response response = json(wire::session_json(session_info(request)));
                          response.fields.emplace_back("Set-Cookie", cookie(request, kept, state->options.secure_cookies));
                          reply.send(std::move(response));
                        },
                    .body_bytes = kSmallBody,
                    .operation = {.id = "signIn", .request = "SignIn", .answers = {{200, "Session"}}}});
  routes.push_back({.method = Method::kDelete, .pattern = "/v1/session", .scope = Scope::kNone,
                    .summary = "Sign a browser out",
                    .answer =
                        [state = state_](const Request& request, Reply reply) {
                          if (state->options.authenticator != nullptr) state->options.authenticator->sign_out(request);
                          Response response = json(R"({"signed_in":false})");
                          response.fields.emplace_back("Set-Cookie", cookie(request, "", state->options.secure_cookies));
                          reply.send(std::move(response));
                        },
                    .operation = {.id = "signOut", .answers = {{200, "SignedOut"}}}});
  return routes;
}

}  // namespace bide::server
