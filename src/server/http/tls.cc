#include "server/http/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "core/quote.h"

namespace bide::server {

namespace {

constexpr unsigned char kProtocols[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

// The first reason in OpenSSL's own words; its queue is empty afterwards.
std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

// What a file is, without reading it.
std::string fingerprint(const std::string& path) {
  struct stat about = {};
  if (::stat(path.c_str(), &about) != 0) return "missing";
  return std::to_string(about.st_ino) + "/" + std::to_string(about.st_size) + "/" + std::to_string(about.st_mtim.tv_sec) +
         "." + std::to_string(about.st_mtim.tv_nsec);
}

// A socket for OpenSSL that never raises SIGPIPE, which its own would.
int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

int write_socket(BIO* bio, const char* bytes, std::size_t size, std::size_t* written) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(socket_of(bio), bytes, size, MSG_NOSIGNAL);
  if (sent < 0) {
    if (BIO_sock_should_retry(static_cast<int>(sent)) != 0) BIO_set_retry_write(bio);
    return 0;
  }
  *written = static_cast<std::size_t>(sent);
  return 1;
}

int read_socket(BIO* bio, char* into, std::size_t size, std::size_t* read) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(socket_of(bio), into, size, 0);
  if (got <= 0) {
    if (got < 0 && BIO_sock_should_retry(static_cast<int>(got)) != 0) BIO_set_retry_read(bio);
    if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return 0;
  }
  *read = static_cast<std::size_t>(got);
  return 1;
}

long control_socket(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bide socket");
    BIO_meth_set_write_ex(made, write_socket);
    BIO_meth_set_read_ex(made, read_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  return method;
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
  unsigned char* chosen = nullptr;
  const int result = SSL_select_next_proto(&chosen, size, kProtocols, sizeof kProtocols, offered, offered_size);
  *out = chosen;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

class TlsChannel : public Channel {
 public:
  TlsChannel(SSL_CTX* context, std::shared_ptr<void> keeps_context, int socket)
      : context_(std::move(keeps_context)), socket_(socket), ssl_(SSL_new(context)) {
    if (ssl_ == nullptr) throw std::bad_alloc();
    BIO* bio = BIO_new(socket_method());
    if (bio == nullptr) {
      SSL_free(ssl_);
      throw std::bad_alloc();
    }
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_, bio, bio);
    SSL_set_accept_state(ssl_);
  }
  ~TlsChannel() override { SSL_free(ssl_); }
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  Transfer handshake() override {
    if (!seen_first_byte_) {
      char first = 0;
      const ssize_t got = ::recv(socket_, &first, 1, MSG_PEEK);
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {.state = Transfer::State::kWantsRead};
      if (got <= 0) return {.state = Transfer::State::kFailed};
      seen_first_byte_ = true;
      constexpr char kHandshake = 0x16;
      if (first != kHandshake) {
        tell_plain_client();
        return {.state = Transfer::State::kFailed};
      }
    }
    ERR_clear_error();
    return result_of(SSL_do_handshake(ssl_), 0);
  }

  Transfer read(char* into, std::size_t size) override {
    ERR_clear_error();
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_, into, size, &got);
    return result_of(result, got);
  }

  Transfer write(std::string_view bytes, bool) override {
    ERR_clear_error();
    std::size_t sent = 0;
    const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &sent);
    return result_of(result, sent);
  }

  bool has_buffered() const override { return SSL_has_pending(ssl_) == 1; }

  void end() override {
    ERR_clear_error();
    SSL_shutdown(ssl_);
    ERR_clear_error();
    ::shutdown(socket_, SHUT_WR);
  }

 private:
  Transfer result_of(int result, std::size_t bytes) {
    if (result == 1) return {.bytes = bytes, .may_be_more = true};
    switch (SSL_get_error(ssl_, result)) {
      case SSL_ERROR_WANT_READ:
        return {.state = Transfer::State::kWantsRead};
      case SSL_ERROR_WANT_WRITE:
        return {.state = Transfer::State::kWantsWrite};
      case SSL_ERROR_ZERO_RETURN:
        return {.state = Transfer::State::kEnded};
      default:
        ERR_clear_error();
        return {.state = Transfer::State::kFailed};
    }
  }

  // In the language it spoke.
  void tell_plain_client() const {
    constexpr std::string_view kAnswer =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nConnection: close\r\n\r\n"
        "{\"type\":\"urn:bide:problem:plain_on_tls_port\",\"title\":\"Plain HTTP on a TLS port\",\"status\":400,"
        "\"code\":\"plain_on_tls_port\",\"detail\":\"this port speaks TLS: use https://\"}";
    [[maybe_unused]] const ssize_t sent = ::send(socket_, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  const std::shared_ptr<void> context_;
  const int socket_;
  SSL* const ssl_;
  bool seen_first_byte_ = false;
};

}  // namespace

struct Tls::Context {
  SSL_CTX* ssl = SSL_CTX_new(TLS_server_method());

  Context() {
    if (ssl == nullptr) throw std::bad_alloc();
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    // An idle connection gives its buffers back.
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, nullptr);
  }
  ~Context() { SSL_CTX_free(ssl); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Status use(const std::string& certificate_file, const std::string& key_file) {
    ERR_clear_error();
    for (const std::string& path : {certificate_file, key_file}) {
      struct stat about = {};
      if (::stat(path.c_str(), &about) != 0) {
        const int error = errno;
        return Error{error == EACCES ? ErrorCode::kPermissionDenied : ErrorCode::kNotFound,
                     "the file " + core::quoted(path) + " cannot be read: " + std::strerror(error)};
      }
    }
    if (SSL_CTX_use_certificate_chain_file(ssl, certificate_file.c_str()) != 1) {
      return Error{ErrorCode::kInvalidArgument,
                   "the certificate " + core::quoted(certificate_file) + " cannot be used: " + openssl_reason()};
    }
    if (SSL_CTX_use_PrivateKey_file(ssl, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
      return Error{ErrorCode::kInvalidArgument,
                   "the key " + core::quoted(key_file) + " cannot be used with " + core::quoted(certificate_file) + ": " +
                       openssl_reason()};
    }
    return {};
  }
};

Tls::Tls(std::string certificate_file, std::string key_file)
    : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}

Tls::~Tls() = default;

Result<std::unique_ptr<Tls>> Tls::load(std::string certificate_file, std::string key_file) {
  std::unique_ptr<Tls> tls(new Tls(std::move(certificate_file), std::move(key_file)));
  if (const Status loaded = tls->reload(); !loaded) return loaded.error();
  return tls;
}

Status Tls::reload() {
  const std::string now = fingerprint(certificate_file_) + " " + fingerprint(key_file_);
  auto context = std::make_shared<Context>();
  const Status used = context->use(certificate_file_, key_file_);
  const std::lock_guard lock(mutex_);
  // Also when it failed: the same bad files are complained about once.
  loaded_ = now;
  if (used) context_ = std::move(context);
  return used;
}

bool Tls::has_changed() const {
  const std::string now = fingerprint(certificate_file_) + " " + fingerprint(key_file_);
  const std::lock_guard lock(mutex_);
  return now != loaded_;
}

std::unique_ptr<Channel> Tls::channel(int socket) const {
  std::shared_ptr<Context> context;
  {
    const std::lock_guard lock(mutex_);
    context = context_;
  }
  SSL_CTX* const ssl = context->ssl;
  return std::make_unique<TlsChannel>(ssl, std::move(context), socket);
}

}  // namespace bide::server
