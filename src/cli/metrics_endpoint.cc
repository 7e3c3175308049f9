#include "cli/metrics_endpoint.h"

#include <utility>

#include "bide/metrics.h"
#include "cli/failure.h"

namespace bide::cli {

MetricsEndpoint::MetricsEndpoint(const std::string& address) {
  auto parsed = server::parse_listen_address(address);
  if (!parsed) fail_usage("--metrics: " + parsed.error().message);
  // Whoever can reach the address may read it: there is nothing of jobs in it but the names of queues and kinds.
  server::Route route{.pattern = "/metrics",
                      .scope = server::Scope::kNone,
                      .summary = "Counters and gauges, for Prometheus",
                      .answer = [this](const server::Request&, server::Reply reply) {
                        writer_.run([to = std::make_shared<server::Reply>(std::move(reply))] {
                          to->send({.status = 200, .content_type = kMetricsContentType, .body = metrics_text()});
                        });
                      }};
  auto started = server::HttpServer::start({.listen = {std::move(*parsed)}, .threads = 1, .service = {.routes = {std::move(route)}}});
  if (!started) throw Failure{exit_code_of(started.error().code), "--metrics: " + started.error().message};
  server_ = std::move(*started);
}

MetricsEndpoint::~MetricsEndpoint() {
  server_->cut_off();
  writer_.stop();
}

std::string MetricsEndpoint::url() const { return server_->urls().front() + "/metrics"; }

}  // namespace bide::cli
