#include "http_client/transfer.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/text.h"

namespace bide::http_client {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  // Fails only for what this version of the library does not have.
  curl_easy_setopt(easy, option, value);
}

long milliseconds(Milliseconds span) { return static_cast<long>(std::max<Milliseconds::rep>(span.count(), 1)); }

HttpFailure failure_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpFailure::kNone;
    case CURLE_URL_MALFORMAT:
      return HttpFailure::kInvalid;
    case CURLE_COULDNT_RESOLVE_HOST:
      return HttpFailure::kNotResolved;
    case CURLE_COULDNT_CONNECT:
      return HttpFailure::kNotConnected;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::kTimedOut;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
      return HttpFailure::kTls;
    default:
      return HttpFailure::kBroken;
  }
}

bool read_address(const sockaddr* from, HttpAddress& address) {
  if (from->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, from, sizeof v4);
    address.family = HttpAddress::Family::kIpv4;
    std::memcpy(address.bytes.data(), &v4.sin_addr, 4);
    address.port = ntohs(v4.sin_port);
    return true;
  }
  if (from->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, from, sizeof v6);
    address.family = HttpAddress::Family::kIpv6;
    std::memcpy(address.bytes.data(), &v6.sin6_addr, 16);
    address.port = ntohs(v6.sin6_port);
    return true;
  }
  return false;
}

}  // namespace

bool Transfer::check_request() {
  Result<Destination> destination = destination_of(request_);
  if (!destination) {
    fail(HttpFailure::kInvalid, destination.error().message);
    return false;
  }
  destination_ = std::move(*destination);
  return true;
}

void Transfer::append(List& list, const std::string& text) {
  if (curl_slist* longer = curl_slist_append(list.get(), text.c_str())) {
    static_cast<void>(list.release());
    list.reset(longer);
  }
}

void Transfer::set_fields() {
  bool has_type = false;
  for (const auto& [name, value] : request_.fields) {
    has_type = has_type || core::lower_case(name) == "content-type";
    append(field_list_, value.empty() ? name + ";" : name + ": " + value);
  }
  // The library would say that a body is a form, and wait for a word of the server before it sends a long one.
  if (!has_type) append(field_list_, "Content-Type:");
  append(field_list_, "Expect:");
  set(easy_.get(), CURLOPT_HTTPHEADER, field_list_.get());
}

void Transfer::prepare(EasyHandle handle, const HttpClientOptions& options, AddressPlaces& places) {
  easy_ = std::move(handle);
  options_ = &options;
  places_ = &places;
  CURL* const easy = easy_.get();
  set(easy, CURLOPT_PRIVATE, static_cast<void*>(this));
  set(easy, CURLOPT_ERRORBUFFER, error_text_);
  set(easy, CURLOPT_NOSIGNAL, 1L);
  // Otherwise the end of a transfer waits for its lookup, however long that takes, and everybody else with it.
  set(easy, CURLOPT_QUICK_EXIT, 1L);

  set(easy, CURLOPT_URL, request_.url.c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_PROXY, "");
  set(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  set(easy, CURLOPT_MAXAGE_CONN, static_cast<long>(options.idle_for.count() / 1000));
  if (!options.certificate_file.empty()) set(easy, CURLOPT_CAINFO, options.certificate_file.c_str());
  if (request_.once) set(easy, CURLOPT_FRESH_CONNECT, 1L);
  if (!request_.unix_socket.empty()) set(easy, CURLOPT_UNIX_SOCKET_PATH, request_.unix_socket.c_str());
  if (!destination_.connect_to.empty()) {
    append(connect_to_list_, destination_.connect_to);
    set(easy, CURLOPT_CONNECT_TO, connect_to_list_.get());
  }

  if (request_.method == "HEAD") {
    set(easy, CURLOPT_NOBODY, 1L);
  } else if (!request_.body.empty() || request_.method == "POST" || request_.method == "PUT" ||
             request_.method == "PATCH") {
    set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    set(easy, CURLOPT_POSTFIELDS, request_.body.data());
    set(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  } else {
    set(easy, CURLOPT_HTTPGET, 1L);
    set(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  set_fields();

  const auto left = std::chrono::ceil<Milliseconds>(deadline() - Clock::now());
  set(easy, CURLOPT_TIMEOUT_MS, milliseconds(left));
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request_.connect_within));

  set(easy, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(easy, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(easy, CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(easy, CURLOPT_OPENSOCKETFUNCTION, &Transfer::on_open_socket);
  set(easy, CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  if (options.max_per_address > 0) {
    set(easy, CURLOPT_PREREQFUNCTION, &Transfer::on_connected);
    set(easy, CURLOPT_PREREQDATA, static_cast<void*>(this));
  }
}

// A transfer is counted for the address that it uses, or tried last.
bool Transfer::take_place(const std::string& address) {
  if (options_->max_per_address <= 0 || address == place_) return true;
  int& taken = (*places_)[address];
  if (taken >= options_->max_per_address) {
    stopped_ = HttpFailure::kAddressBusy;
    stopped_text_ = "too many requests to " + address + " are under way";
    return false;
  }
  ++taken;
  leave_place();
  place_ = address;
  return true;
}

void Transfer::leave_place() {
  if (place_.empty()) return;
  const auto found = places_->find(place_);
  if (--found->second == 0) places_->erase(found);
  place_.clear();
}

EasyHandle Transfer::take_handle() {
  leave_place();
  return std::move(easy_);
}

// Also when a connection is used again, and so no socket was opened.
int Transfer::on_connected(void* self, char* address, char*, int, int) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  if (address == nullptr || *address == '\0') return CURL_PREREQFUNC_OK;  // A Unix socket.
  return transfer.take_place(address) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

curl_socket_t Transfer::on_open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  if (transfer.stopped_ != HttpFailure::kNone) return CURL_SOCKET_BAD;
  HttpAddress given;
  const bool known = read_address(&address->addr, given);
  if (const AddressCheck& check = transfer.options_->address_check; check && address->family != AF_UNIX) {
    Status allowed = known ? check(transfer.destination_.host, given)
                           : Error{ErrorCode::kInvalidArgument, "an unknown kind of address"};
    if (!allowed) {
      transfer.stopped_ = HttpFailure::kAddressRefused;
      transfer.stopped_text_ = allowed.error().message;
      return CURL_SOCKET_BAD;
    }
  }
  if (known && !transfer.take_place(given.host())) return CURL_SOCKET_BAD;
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

std::size_t Transfer::on_header(char* bytes, std::size_t one, std::size_t count, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  transfer.header_bytes_ += one * count;
  if (transfer.header_bytes_ > kHeaderBytes) {
    transfer.stopped_ = HttpFailure::kBroken;
    transfer.stopped_text_ = "the header of the answer has more than " + std::to_string(kHeaderBytes) + " bytes";
    return 0;
  }
  transfer.take_header({bytes, one * count});
  return one * count;
}

void Transfer::take_header(std::string_view line) {
  if (body_began_) return;  // Fields after the body are no part of what was asked for.
  if (line.starts_with("HTTP/")) {
    answer_.fields.clear();  // What came before was provisional.
    head_ended_ = false;
    return;
  }
  if (core::trimmed(line, kBlanks).empty()) head_ended_ = true;
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return;
  answer_.fields.emplace_back(core::lower_case(line.substr(0, colon)),
                              std::string(core::trimmed(line.substr(colon + 1), kBlanks)));
}

std::size_t Transfer::on_body(char* bytes, std::size_t one, std::size_t count, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  const std::size_t size = one * count;
  std::string& body = transfer.answer_.body;
  transfer.body_began_ = true;
  const std::size_t room = transfer.request_.answer_limit - body.size();
  body.append(bytes, std::min(size, room));
  if (size <= room) return size;
  transfer.stopped_ = HttpFailure::kTooLarge;
  transfer.stopped_text_ = "the answer has more than " + std::to_string(transfer.request_.answer_limit) + " bytes";
  return 0;
}

void Transfer::finish(CURLcode code) {
  long number = 0;
  if (curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &number) == CURLE_OK)
    answer_.status = static_cast<int>(number);
  if (curl_easy_getinfo(easy_.get(), CURLINFO_REQUEST_SIZE, &number) == CURLE_OK) answer_.sent = number > 0;
  char* address = nullptr;
  if (curl_easy_getinfo(easy_.get(), CURLINFO_PRIMARY_IP, &address) == CURLE_OK && address != nullptr) {
    answer_.address = address;
  }
  if (code == CURLE_OK) {
    // The library takes what came of a header for the whole of it when the connection ends.
    if (!head_ended_) fail(HttpFailure::kBroken, "the connection ended within the header of the answer");
    return;
  }
  if (stopped_ != HttpFailure::kNone) return fail(stopped_, std::move(stopped_text_));
  fail(failure_of(code), error_text_[0] != '\0' ? error_text_ : curl_easy_strerror(code));
}

void Transfer::fail(HttpFailure failure, std::string error) {
  answer_.failure = failure;
  answer_.error = std::move(error);
}

void Transfer::complete() {
  answer_.took = std::chrono::duration_cast<Milliseconds>(Clock::now() - since_);
  const HttpDone done = std::move(done_);
  if (done) done(std::move(answer_));
}

}  // namespace bide::http_client
