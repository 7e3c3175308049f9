// HttpRequest and HttpAnswer: what an HttpClient sends, and what came of it.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bide::http_client {

using Milliseconds = std::chrono::milliseconds;
using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string url = {};  // http: or https:; nothing else is ever spoken. Name and password in it are refused.
  HttpFields fields = {};
  std::string body = {};

  std::string unix_socket = {};     // Not empty: connect to this file; the host in the URL is only a name then.
  std::string pinned_address = {};  // Not empty: connect to this numeric address; the host is not looked up.

  Milliseconds connect_within{5'000};  // Name lookup, connection and TLS together.
  // From send() to the last byte of the answer, with the time of waiting for its turn. A long poll says its own.
  Milliseconds answer_within{30'000};
  bool once = false;  // Goes out on a fresh connection, so that it is certainly not sent a second time.
  std::size_t answer_limit = 64 * 1024;  // Of the body; a longer one is cut there and is a failure.
};

enum class HttpFailure : std::uint8_t {
  kNone,            // There is an answer, whatever its status.
  kInvalid,         // The request cannot be sent: URL, scheme, method or a field.
  kAddressRefused,  // By the check of the client.
  kNotResolved,     // There is no such host, or nobody could say.
  kNotConnected,    // Nobody listens, or the network does not reach there.
  kTls,             // The certificate, or the handshake.
  kTimedOut,
  kAddressBusy,     // Too many requests to its address are under way. Nothing was sent.
  kTooLarge,   // status, fields and the beginning of the body are there.
  kBroken,     // The connection ended too early, or what came is not HTTP.
  kCancelled,  // By cancel(), or by the end of the client.
};

std::string_view to_string(HttpFailure failure);

struct HttpAnswer {
  HttpFailure failure = HttpFailure::kNone;
  std::string error = {};  // One line for people; empty when there is no failure. Nothing of the URL's query is in it.
  int status = 0;          // 0: there was none.
  HttpFields fields = {};  // Names in lower case, in the order they came.
  std::string body = {};
  bool sent = false;         // Somebody may have received the request. False: certainly nobody acted on it.
  std::string address = {};  // Of the other side, where one was reached.
  Milliseconds took{0};      // From send() on.

  bool ok() const { return failure == HttpFailure::kNone && status >= 200 && status < 300; }
  std::string_view field(std::string_view lower_case_name) const;  // The first; empty when it is not there.
};

}  // namespace bide::http_client
