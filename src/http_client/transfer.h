// Transfer: one request under way, and the answer as it comes in. Of the client's thread.

#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "bide/result.h"
#include "http_client/http_client.h"
#include "http_client/http_request.h"

namespace bide::http_client {

// Where a request goes, read from its URL and checked before anything is sent.
struct Destination {
  std::string host = {};        // Without the brackets of a numeric IPv6 address.
  std::string key = {};         // Requests with the same key share connections and their number is bounded together.
  std::string connect_to = {};  // As CURLOPT_CONNECT_TO wants it; empty: wherever the host is.
};

// kInvalidArgument: the message says what is wrong with the request, without its query.
Result<Destination> destination_of(const HttpRequest& request);

struct CloseEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using EasyHandle = std::unique_ptr<CURL, CloseEasy>;

// How many transfers are under way to each address.
using AddressPlaces = std::map<std::string, int>;

// Does not move: the library keeps pointers to it.
class Transfer {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kHeaderBytes = 64 * 1024;

  Transfer(std::uint64_t ticket, HttpRequest request, HttpDone done, Clock::time_point since)
      : ticket_(ticket), request_(std::move(request)), done_(std::move(done)), since_(since) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  std::uint64_t ticket() const { return ticket_; }
  Clock::time_point deadline() const { return since_ + request_.answer_within; }
  const Destination& destination() const { return destination_; }
  bool is_under_way() const { return easy_ != nullptr; }
  CURL* easy() const { return easy_.get(); }

  // False: fail() was called.
  bool check_request();
  // Sets the handle up. `options` and `places` must outlive the transfer.
  void prepare(EasyHandle easy, const HttpClientOptions& options, AddressPlaces& places);
  // When the library is through with it.
  void finish(CURLcode code);
  void fail(HttpFailure failure, std::string error);

  EasyHandle take_handle();
  void complete();  // Calls back.

 private:
  static std::size_t on_body(char* bytes, std::size_t one, std::size_t count, void* self);
  static std::size_t on_header(char* bytes, std::size_t one, std::size_t count, void* self);
  static int on_connected(void* self, char* address, char* own_address, int port, int own_port);
  bool take_place(const std::string& address);
  void leave_place();
  static curl_socket_t on_open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  void take_header(std::string_view line);
  void set_fields();

  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  using List = std::unique_ptr<curl_slist, FreeList>;
  static void append(List& list, const std::string& text);

  const std::uint64_t ticket_;
  HttpRequest request_;
  HttpDone done_;
  const Clock::time_point since_;
  Destination destination_;
  const HttpClientOptions* options_ = nullptr;
  AddressPlaces* places_ = nullptr;
  std::string place_ = {};  // The address it is counted for.

  EasyHandle easy_;
  List field_list_;
  List connect_to_list_;
  char error_text_[CURL_ERROR_SIZE] = {};
  HttpAnswer answer_;
  std::size_t header_bytes_ = 0;
  bool head_ended_ = false;
  bool body_began_ = false;
  HttpFailure stopped_ = HttpFailure::kNone;  // Why a callback ended it.
  std::string stopped_text_;
};

}  // namespace bide::http_client
