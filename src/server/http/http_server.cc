#include "server/http/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <deque>
#include <future>
#include <thread>
#include <utility>

#include "core/quote.h"
#include "server/http/response_writer.h"
#include "server/http/session.h"
#include "server/http/tls.h"

namespace bide::server {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Local = asio::local::stream_protocol;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr int kBacklog = 4096;
constexpr milliseconds kAcceptPause{100};
// A client that was switched off says nothing. Without these its connection, and the poll that waits on it, would stay
// for hours; so they are found out after 20 to 25 seconds.
constexpr int kKeepAliveAfterSeconds = 10;
constexpr int kKeepAliveEverySeconds = 5;
constexpr int kKeepAliveProbes = 3;
constexpr int kUnacknowledgedMs = 20'000;

Error cannot_listen(const ListenAddress& address, const error_code& error) {
  const std::string where = "cannot listen on " + core::quoted(to_string(address)) + ": ";
  if (error == asio::error::address_in_use) {
    return {ErrorCode::kPermissionDenied,
            where + "another process has this address; stop it, or choose another with --listen"};
  }
  if (error == asio::error::access_denied) {
    return {ErrorCode::kPermissionDenied, where + error.message() +
                                              "; ports below 1024 are for root: choose a higher one with --listen"};
  }
  return {ErrorCode::kInvalidArgument, where + error.message() + "; choose another address with --listen"};
}

// Somebody answers there.
bool is_in_use(asio::io_context& io, const Local::endpoint& endpoint) {
  Local::socket probe(io);
  error_code error;
  probe.connect(endpoint, error);
  return !error;
}

std::string peer_name(const tcp::endpoint& endpoint) {
  const auto address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}
std::string peer_name(const Local::endpoint&) { return "unix"; }

std::string local_name(const tcp::acceptor& acceptor) {
  error_code ignored;
  const tcp::endpoint endpoint = acceptor.local_endpoint(ignored);
  return to_string(ListenAddress{.host = endpoint.address().to_string(), .port = endpoint.port()});
}
std::string local_name(const Local::acceptor& acceptor) {
  error_code ignored;
  return to_string(ListenAddress{.path = acceptor.local_endpoint(ignored).path()});
}

void prepare(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [handle = socket.native_handle()](int option, int value) {
    ::setsockopt(handle, IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, kKeepAliveAfterSeconds);
  set(TCP_KEEPINTVL, kKeepAliveEverySeconds);
  set(TCP_KEEPCNT, kKeepAliveProbes);
  set(TCP_USER_TIMEOUT, kUnacknowledgedMs);
}
void prepare(Local::socket&) {}

}  // namespace

class HttpServer::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(HttpOptions options)
      : service_(std::move(options.service)),
        listen_(std::move(options.listen)),
        certificate_check_interval_(options.certificate_check_interval),
        io_(std::max(1, options.threads)),
        work_(asio::make_work_guard(io_)),
        strand_(asio::make_strand(io_)),
        timer_(strand_) {
    const HttpLimits& limits = service_.limits;
    const milliseconds shortest = std::min({limits.idle_timeout, limits.head_timeout, limits.transfer_timeout, certificate_check_interval_});
    tick_ = std::clamp(shortest / 4, milliseconds(10), milliseconds(1'000));
  }

  Status open(const HttpOptions& options) {
    if (!options.certificate_file.empty()) {
      auto tls = Tls::load(options.certificate_file, options.key_file);
      if (!tls) return tls.error();
      tls_ = std::move(*tls);
    }
    for (ListenAddress& address : listen_) {
      if (const Status opened = address.is_unix() ? open_local(address) : open_tcp(address); !opened) return opened;
    }
    return {};
  }

  void run(int threads) {
    for (auto& acceptor : tcp_acceptors_) accept(acceptor, tls_.get());
    for (auto& acceptor : local_acceptors_) accept(acceptor, nullptr);
    if (tls_) arm_timer();
    for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { work(); });
  }

  // The acceptors are closed before the connections are listed, on the strand that also adds them: none is missed.
  void begin_drain() {
    service_.draining = true;
    asio::post(strand_, [this, self = shared_from_this()] {
      close_acceptors();
      for (const auto& session : service_.connections.all()) session->drain();
    });
  }

  void stop() {
    if (std::exchange(stopped_, true)) return;
    service_.draining = true;
    asio::post(strand_, [this] {
      close_acceptors();
      for (const auto& session : service_.connections.all()) session->abort();
      stopping_ = true;
      timer_.cancel();
    });
    work_.reset();
    // Without work left each thread comes to its end; every connection was closed by then.
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    for (const ListenAddress& address : listen_) {
      if (address.is_unix() && is_bound_) ::unlink(address.path.c_str());
    }
  }

  bool is_responsive(milliseconds patience) {
    auto ran = std::make_shared<std::promise<void>>();
    asio::post(io_, [ran] { ran->set_value(); });
    return ran->get_future().wait_for(patience) == std::future_status::ready;
  }

  Service& service() { return service_; }
  const std::vector<ListenAddress>& addresses() const { return listen_; }
  Tls* tls() { return tls_.get(); }
  std::uint64_t accepted() const { return accepted_; }

 private:
  // Whatever escapes a handler concerns one connection; the others must not suffer.
  void work() {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception& thrown) {
        report_problem("a connection was given up: " + core::printable(thrown.what()));
      }
    }
  }

  void report_problem(const std::string& text) {
    if (service_.on_problem) service_.on_problem(text);
  }

  Status open_tcp(ListenAddress& address) {
    error_code error;
    const tcp::endpoint endpoint(asio::ip::make_address(address.host, error), address.port);
    tcp::acceptor acceptor(strand_);
    if (!error) acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(kBacklog, error);
    if (error) return cannot_listen(address, error);
    address.port = acceptor.local_endpoint().port();
    tcp_acceptors_.push_back(std::move(acceptor));
    return {};
  }

  Status open_local(const ListenAddress& address) {
    const Local::endpoint endpoint(address.path);
    struct stat about = {};
    if (::lstat(address.path.c_str(), &about) == 0) {
      // What is left of a server that died; never anything else.
      if (!S_ISSOCK(about.st_mode) || is_in_use(io_, endpoint)) return cannot_listen(address, asio::error::address_in_use);
      ::unlink(address.path.c_str());
    }
    error_code error;
    Local::acceptor acceptor(strand_);
    acceptor.open(endpoint.protocol(), error);
    // The file is made with these rights: for this user and group.
    if (!error) ::fchmod(acceptor.native_handle(), 0660);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) ::chmod(address.path.c_str(), 0660);
    if (!error) acceptor.listen(kBacklog, error);
    if (error) return cannot_listen(address, error);
    is_bound_ = true;
    local_acceptors_.push_back(std::move(acceptor));
    return {};
  }

  template <class Acceptor>
  void accept(Acceptor& acceptor, Tls* tls) {
    using Accepted = typename Acceptor::protocol_type::socket;
    // One connection's handlers run one after the other, on whichever thread.
    const asio::any_io_executor strand = asio::make_strand(io_);
    acceptor.async_accept(strand, [this, self = shared_from_this(), &acceptor, tls](error_code error, Accepted socket) {
      if (error == asio::error::operation_aborted || !acceptor.is_open()) return;
      if (error == asio::error::no_descriptors || error == asio::error::no_memory ||
          error == asio::error::no_buffer_space) {
        report_problem("no connection can be accepted on " + local_name(acceptor) + ": " + error.message());
        // One for each acceptor: they can be out of descriptors at the same time.
        const auto pause = std::make_shared<asio::steady_timer>(strand_, kAcceptPause);
        pause->async_wait([this, self, &acceptor, tls, pause](error_code) {
          if (acceptor.is_open()) accept(acceptor, tls);
        });
        return;
      }
      if (!error) start_session(std::move(socket), tls);
      accept(acceptor, tls);
    });
  }

  template <class Accepted>
  void start_session(Accepted socket, Tls* tls) {
    error_code error;
    const std::string peer = peer_name(socket.remote_endpoint(error));
    if (error) return;  // Gone already.
    prepare(socket);
    socket.non_blocking(true, error);
    ++accepted_;
    if (!service_.connections.make_slot(service_.limits)) return reject(socket, tls);
    auto channel = tls == nullptr ? plain_channel(socket.native_handle()) : tls->channel(socket.native_handle());
    std::make_shared<Session>(Socket(std::move(socket)), std::move(channel), peer,
                              std::shared_ptr<Service>(shared_from_this(), &service_))
        ->start();
    arm_timer();
  }

  template <class Accepted>
  void reject(Accepted& socket, Tls* tls) {
    ++service_.refused;
    if (tls != nullptr) return;
    const Response response = to_response({.status = 503,
                                           .code = "unavailable",
                                           .detail = "too many connections are open",
                                           .retry_after = milliseconds(1'000)});
    const std::string text = head_text(response, {.keep_alive = false, .length = response.body.size()}) + response.body;
    error_code ignored;
    socket.write_some(asio::buffer(text), ignored);
    socket.shutdown(Accepted::shutdown_send, ignored);
  }

  void close_acceptors() {
    error_code ignored;
    for (auto& acceptor : tcp_acceptors_) acceptor.close(ignored);
    for (auto& acceptor : local_acceptors_) acceptor.close(ignored);
  }

  // Runs while there is something to look after.
  void arm_timer() {
    if (ticking_.exchange(true)) return;
    asio::post(strand_, [this, self = shared_from_this()] { next_tick(); });
  }

  void next_tick() {
    if (stopping_) return;
    timer_.expires_after(tick_);
    timer_.async_wait([this, self = shared_from_this()](error_code stopped) {
      if (stopped) return;
      const auto now = std::chrono::steady_clock::now();
      for (const auto& session : service_.connections.overdue(now)) session->give_up_overdue();
      check_certificate(now);
      revalidate_callers();
      ticking_ = false;
      if (tls_ || service_.connections.count() > 0) arm_timer();
    });
  }

  void revalidate_callers() {
    if (!service_.revalidation.version) return;
    const std::uint64_t version = service_.revalidation.version();
    if (std::exchange(validity_version_, version) == version) return;
    for (const auto& session : service_.connections.all()) session->revalidate_caller();
  }

  void check_certificate(std::chrono::steady_clock::time_point now) {
    if (!tls_ || now < certificate_checked_ + certificate_check_interval_) return;
    certificate_checked_ = now;
    if (!tls_->has_changed()) return;
    if (const Status loaded = tls_->reload(); !loaded) {
      report_problem("the certificate has changed and cannot be used; the old one stays in use: " + loaded.error().message);
    } else {
      report_problem("the certificate was read again");
    }
  }

  Service service_;
  std::vector<ListenAddress> listen_;
  const milliseconds certificate_check_interval_;
  milliseconds tick_{1'000};
  std::unique_ptr<Tls> tls_;
  std::atomic<std::uint64_t> accepted_ = 0;
  std::atomic<bool> ticking_ = false;
  bool is_bound_ = false;
  bool stopped_ = false;

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::strand<asio::io_context::executor_type> strand_;  // For everything below, except the threads.
  asio::steady_timer timer_;
  bool stopping_ = false;
  std::uint64_t validity_version_ = 0;
  std::chrono::steady_clock::time_point certificate_checked_ = std::chrono::steady_clock::now();
  std::deque<tcp::acceptor> tcp_acceptors_;
  std::deque<Local::acceptor> local_acceptors_;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(std::shared_ptr<Core> core) : core_(std::move(core)) {}

HttpServer::~HttpServer() { core_->stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpOptions options) {
  const HttpOptions files{.certificate_file = options.certificate_file, .key_file = options.key_file};
  const int threads = options.threads;
  auto core = std::make_shared<Core>(std::move(options));
  if (const Status opened = core->open(files); !opened) return opened.error();
  core->run(threads);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

std::vector<ListenAddress> HttpServer::addresses() const { return core_->addresses(); }

std::vector<std::string> HttpServer::urls() const {
  std::vector<std::string> all;
  for (const ListenAddress& address : core_->addresses()) {
    const char* scheme = address.is_unix() ? "" : core_->tls() != nullptr ? "https://" : "http://";
    all.push_back(scheme + to_string(address));
  }
  return all;
}

Status HttpServer::reload_certificate() { return core_->tls() == nullptr ? Status() : core_->tls()->reload(); }

void HttpServer::begin_drain() { core_->begin_drain(); }

bool HttpServer::wait_drained(milliseconds patience) { return core_->service().connections.wait_for_none(patience); }

void HttpServer::cut_off() { core_->stop(); }

bool HttpServer::is_responsive(milliseconds patience) const { return core_->is_responsive(patience); }

HttpCounts HttpServer::counts() const {
  const Service& service = core_->service();
  return {.connections = service.connections.count(),
          .accepted = core_->accepted(),
          .requests = service.requests,
          .refused = service.refused,
          .held_bytes = service.memory->held()};
}

}  // namespace bide::server
