// HTTPS with OpenSSL's own client on the other side.

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "server/certificate.h"
#include "server/http_fixture.h"
#include "support/temporary_directory.h"

namespace bide::server_tests {
namespace {

// Blocking, and trusting whatever it is shown.
class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port, int newest = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    SSL_CTX_set_max_proto_version(context_.get(), newest);
    connection_.reset(BIO_new_ssl_connect(context_.get()));
    BIO_set_conn_hostname(connection_.get(), ("127.0.0.1:" + std::to_string(port)).c_str());
    BIO_get_ssl(connection_.get(), &ssl_);
    is_connected_ = BIO_do_connect(connection_.get()) == 1;
  }

  bool is_connected() const { return is_connected_; }
  std::string subject() const {
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl_), X509_free);
    char name[100] = {};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name, sizeof name);
    return name;
  }

  void send(std::string_view bytes) {
    if (BIO_write(connection_.get(), bytes.data(), static_cast<int>(bytes.size())) != static_cast<int>(bytes.size())) {
      throw std::runtime_error("not sent");
    }
  }
  // With a body of so many bytes.
  std::string receive(std::size_t body) {
    std::string all;
    char bytes[16 * 1024];
    for (;;) {
      const std::size_t end = all.find("\r\n\r\n");
      if (end != std::string::npos && all.size() >= end + 4 + body) return all.substr(end + 4);
      const int got = BIO_read(connection_.get(), bytes, sizeof bytes);
      if (got <= 0) throw std::runtime_error("the connection ended");
      all.append(bytes, static_cast<std::size_t>(got));
    }
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<BIO, decltype(&BIO_free_all)> connection_{nullptr, BIO_free_all};
  SSL* ssl_ = nullptr;
  bool is_connected_ = false;
};

class TlsConnection : public HttpFixture {
 protected:
  TlsConnection() { write_certificate(certificate_, key_, "first"); }

  void start_with_tls(HttpOptions options = {}) {
    options.certificate_file = certificate_;
    options.key_file = key_;
    start(std::move(options));
  }

  support::TemporaryDirectory directory_;
  const std::string certificate_ = directory_.path() + "/certificate.pem";
  const std::string key_ = directory_.path() + "/key.pem";
};

TEST_F(TlsConnection, ServesRequestsLikeAPlainOne) {
  start_with_tls();
  EXPECT_TRUE(server_->urls().front().starts_with("https://127.0.0.1:"));
  TlsClient client(port_);
  ASSERT_TRUE(client.is_connected());
  for (int i = 0; i < 3; ++i) {
    client.send(get("/hello"));
    EXPECT_EQ(client.receive(5), "hello");
  }
  client.send(get("/hello") + get("/hello?bytes=5"));
  EXPECT_EQ(client.receive(5).substr(0, 5), "hello");
}

TEST_F(TlsConnection, CarriesLargeBodiesBothWays) {
  start_with_tls();
  TlsClient client(port_);
  const std::string body(5'000'000, 'x');
  client.send(post("/echo", body));
  EXPECT_TRUE(client.receive(body.size()) == body);
  client.send(get("/hello?bytes=5000000"));
  EXPECT_EQ(client.receive(5'000'000).size(), 5'000'000u);
}

TEST_F(TlsConnection, SpeaksNothingOlderThanTls12) {
  start_with_tls();
  EXPECT_TRUE(TlsClient(port_, TLS1_2_VERSION).is_connected());
  EXPECT_FALSE(TlsClient(port_, TLS1_1_VERSION).is_connected());
}

TEST_F(TlsConnection, TellsPlainClientsSo) {
  start_with_tls();
  RawClient client(port_);
  client.send(get("/hello"));
  EXPECT_NE(client.receive_until("https://\"").find("plain_on_tls_port"), std::string::npos);
}

TEST_F(TlsConnection, SurvivesHandshakesThatAreNone) {
  HttpOptions options;
  options.service.limits.head_timeout = std::chrono::milliseconds(50);
  start_with_tls(std::move(options));
  RawClient half(port_);
  half.send("\x16\x03\x01");
  EXPECT_TRUE(half.is_closed_by_server());
  RawClient wrong(port_);
  wrong.send(std::string("\x16\x03\x01\x00\x05hello", 10) + std::string(1000, 'x'));
  wrong.receive_rest();
  RawClient(port_).slam();
  TlsClient client(port_);
  client.send(get("/hello"));
  EXPECT_EQ(client.receive(5), "hello");
}

TEST_F(TlsConnection, ShowsANewCertificateWithoutLosingOpenConnections) {
  start_with_tls();
  TlsClient old(port_);
  EXPECT_EQ(old.subject(), "first");
  write_certificate(certificate_, key_, "second");
  ASSERT_TRUE(server_->reload_certificate());
  EXPECT_EQ(TlsClient(port_).subject(), "second");
  old.send(get("/hello"));
  EXPECT_EQ(old.receive(5), "hello");
}

TEST_F(TlsConnection, KeepsItsCertificateWhenTheNewOneIsNoGood) {
  start_with_tls();
  write_certificate(directory_.path() + "/other.pem", key_, "other");
  const Status reloaded = server_->reload_certificate();
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(reloaded.error().message.find("key.pem"), std::string::npos) << reloaded.error().message;
  EXPECT_EQ(TlsClient(port_).subject(), "first");
}

TEST_F(TlsConnection, FindsANewCertificateByItself) {
  start_with_tls({.certificate_check_interval = std::chrono::milliseconds(20)});
  // Nobody has connected yet, and nobody asks for it.
  write_certificate(certificate_, key_, "second");
  wait_for_problem("the certificate was read again");
  TlsClient old(port_);
  EXPECT_EQ(old.subject(), "second");
  // As it is usually replaced: a new file in the place of the old one.
  write_certificate(directory_.path() + "/new.pem", directory_.path() + "/new_key.pem", "third");
  std::filesystem::rename(directory_.path() + "/new_key.pem", key_);
  // Half of it is new: what was in use stays in use, and that is said.
  EXPECT_NE(wait_for_problem("the old one stays in use").find("key.pem"), std::string::npos);
  EXPECT_EQ(TlsClient(port_).subject(), "second");
  std::filesystem::rename(directory_.path() + "/new.pem", certificate_);
  while (TlsClient(port_).subject() != "third") std::this_thread::sleep_for(std::chrono::milliseconds(1));
  old.send(get("/hello"));
  EXPECT_EQ(old.receive(5), "hello");
}

TEST_F(TlsConnection, DoesNotReadACertificateAgainThatHasNotChanged) {
  start_with_tls({.certificate_check_interval = std::chrono::milliseconds(1)});
  // Many looks later nothing was said.
  for (int i = 0; i < 50; ++i) EXPECT_EQ(TlsClient(port_).subject(), "first");
  EXPECT_EQ(problems(), std::vector<std::string>());
}

TEST_F(TlsConnection, NeedsFilesThatCanBeRead) {
  const auto missing = HttpServer::start(
      {.listen = {{.host = "127.0.0.1"}}, .certificate_file = directory_.path() + "/none.pem", .key_file = key_});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST_F(TlsConnection, CannotKillTheServerBySlammingTheDoor) {
  start_with_tls();
  for (int i = 0; i < 20; ++i) {
    TlsClient client(port_);
    client.send(get("/hello?bytes=3000000"));
  }
  TlsClient client(port_);
  client.send(get("/hello"));
  EXPECT_EQ(client.receive(5), "hello");
}

}  // namespace
}  // namespace bide::server_tests
