// bide serve: a broker behind HTTP.

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/open_client.h"
#include "server/config.h"
#include "server/sd_notify.h"
#include "server/server.h"

namespace bide::cli {

namespace {

using server::Server;
using server::ServerOptions;

constexpr int kLargeBytes = 256 * 1024;

// The file first, and flags in place of what it says.
ServerOptions server_options(const Invocation& call) {
  ServerOptions options;
  const auto file = call.value("--config");
  if (file) {
    auto read = server::read_configuration(*file);
    if (!read) throw Failure{kConfiguration, read.error().message, std::string(to_string(read.error().code))};
    options = std::move(*read);
  }
  if (!file || call.has(kUrlFlag.name)) options.url = url_of(call);
  if (call.has("--listen")) options.listen = call.values("--listen");
  if (call.has("--tls-certificate")) options.tls.certificate = *call.value("--tls-certificate");
  if (call.has("--tls-key")) options.tls.key = *call.value("--tls-key");
  if (call.has("--host")) options.hosts = call.values("--host");
  if (call.has("--token-file")) options.token_file = *call.value("--token-file");
  if (call.has("--backup-directory")) options.backup_directory = *call.value("--backup-directory");
  if (call.has("--local-without-token")) options.local_without_token = true;
  if (const auto grace = call.duration("--grace")) options.grace = *grace;
  if (call.json()) options.log.format = server::LogFormat::kJson;
  if (call.has("--verbose")) options.log.level = server::LogLevel::kDebug;
  options.version = std::string(version());
  return options;
}

// A connection needs a descriptor. The store must find some, too, however many connections there are.
void make_room_for_connections(ServerOptions& options) {
  constexpr std::uint64_t kKept = 512;
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t wanted = std::min<rlim_t>(files.rlim_max, options.limits.connections + kKept);
  if (files.rlim_cur < wanted) {
    files.rlim_cur = wanted;
    ::setrlimit(RLIMIT_NOFILE, &files);
    ::getrlimit(RLIMIT_NOFILE, &files);
  }
  const std::uint64_t most = files.rlim_cur > 2 * kKept ? files.rlim_cur - kKept : files.rlim_cur / 2;
  options.limits.connections = static_cast<std::size_t>(std::min<std::uint64_t>(options.limits.connections, most));
}

sigset_t blocked_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// 0: none came in that time.
int next_signal(const sigset_t& signals, std::optional<std::chrono::microseconds> patience) {
  timespec time = {};
  if (patience) {
    time.tv_sec = static_cast<time_t>(patience->count() / 1'000'000);
    time.tv_nsec = static_cast<long>(patience->count() % 1'000'000 * 1'000);
  }
  const int signal = ::sigtimedwait(&signals, nullptr, patience ? &time : nullptr);
  return signal < 0 ? 0 : signal;
}

void serve_until_told(Server& server, const server::SdNotify& systemd, const sigset_t& signals) {
  constexpr std::chrono::milliseconds kComesAround{1'000};
  for (;;) {
    switch (next_signal(signals, systemd.alive_every())) {
      case SIGTERM:
      case SIGINT:
        return;
      case SIGHUP:
        if (const Status reloaded = server.reload(); reloaded) {
          server.log().info("the certificate was read again");
        } else {
          server.log().error("the certificate stays as it is: " + reloaded.error().message);
        }
        break;
      default:
        // Without a sign of life systemd starts us again, which is what helps when the threads are stuck.
        if (systemd.alive_every() && server.is_responsive(kComesAround)) systemd.alive();
    }
  }
}

// Where the dashboard is. The link that signs in is for whoever sits at the terminal, and not for whoever reads the log of a
// service, unless it was asked for.
void print_dashboard(const Server& server, const Invocation& call, bool local_without_token) {
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1 && !call.json();
  if (!is_terminal && !call.has("--sign-in-link")) return;
  const auto link = local_without_token && !call.has("--sign-in-link") ? std::nullopt : server.sign_in_link();
  const std::vector<std::string> urls = server.urls();
  const auto web = std::find_if(urls.begin(), urls.end(), [](const std::string& url) { return url.starts_with("http"); });
  if (link) {
    std::fprintf(stderr, "\n  Dashboard, signed in (works once, for 15 minutes):\n  %s\n\n", link->c_str());
  } else if (web != urls.end()) {
    std::fprintf(stderr, "\n  Dashboard: %s/\n\n", web->c_str());
  }
}

int serve(const Invocation& call) {
  // Before there are other threads, which inherit it: signals wait until this one asks for them.
  const sigset_t signals = blocked_signals();
  ::signal(SIGPIPE, SIG_IGN);
  // Large bodies and answers go back to the system when they are freed, so that the limits on memory hold for what the
  // process really has. Otherwise the allocator keeps them once one of their size was freed.
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  const server::SdNotify systemd = server::SdNotify::from_environment();

  ServerOptions options = server_options(call);
  make_room_for_connections(options);
  const std::chrono::milliseconds grace = options.grace;
  const bool local_without_token = options.local_without_token;
  auto started = Server::start(std::move(options));
  if (!started) fail_configured(started.error());
  Server& server = **started;
  print_dashboard(server, call, local_without_token);
  systemd.ready("listening on " + server.urls().front());

  serve_until_told(server, systemd, signals);
  server.log().info("stopping", {{"connections", server.counts().connections}});
  systemd.stopping("finishing what is under way");
  systemd.extend_timeout(grace + std::chrono::seconds(5));
  if (!server.stop()) server.log().warning("some requests were cut off: they took longer than the grace time");
  return kOk;
}

}  // namespace

std::vector<Command> serve_commands() {
  return {
      {.path = "serve",
       .summary = "Put a broker behind HTTP, until SIGTERM",
       .details =
           "Programs in any language enqueue jobs, lease them and settle them over HTTP; /v1/openapi.json describes\n"
           "how, /healthz, /readyz and /metrics are for whoever watches over the server. A browser finds the dashboard\n"
           "at /; on a terminal a link is printed that signs in to it once.\n\n"
           "Callers show a token that `bide token create` made. With --local-without-token processes of this\n"
           "user on this machine need none. An address that others can reach is refused while there are no tokens.\n\n"
           "SIGTERM and SIGINT: no new connection, polls are answered empty, what is under way is finished within the\n"
           "grace time, exit status 0. SIGHUP: certificate and key are read again, which also happens by itself when\n"
           "the files change. Flags take the place of what the configuration file says.",
       .flags = {{"--config", "FILE", "a configuration in TOML; flags come before it"},
                 {"--listen", "ADDRESS",
                  "HOST:PORT, [IPV6]:PORT or unix:PATH; may be given several times; default: 127.0.0.1:7070", true},
                 {"--tls-certificate", "FILE", "PEM, the whole chain: then https"},
                 {"--tls-key", "FILE", "PEM"},
                 {"--host", "NAME", "a name under which browsers reach the server; may be given several times", true},
                 {"--token-file", "FILE", "where the tokens are; default: `tokens` in the data directory"},
                 {"--backup-directory", "DIR", "where POST /v1/backup may make backups; default: nowhere"},
                 {"--local-without-token", "", "processes of this user on this machine need no token"},
                 {"--sign-in-link", "", "print a link that signs a browser in once, also when this is no terminal"},
                 {"--grace", "DURATION", "to finish after SIGTERM; default: 25s"},
                 {"--verbose", "", "a line for each request"},
                 kUrlFlag,
                 {"--json", "", "the log as JSON, also on a terminal"}},
       .run = serve}};
}

}  // namespace bide::cli
