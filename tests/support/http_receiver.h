// HttpReceiver: a server of a few lines on loopback. A script answers each request, well or badly: byte by byte, too
// much, not at all.
//
//   HttpReceiver receiver([](const HttpReceived& request, HttpPeer& peer) { peer.answer("200 OK", request.body); });

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace bide::support {

struct HttpReceived {
  std::string line = {};                           // "POST /hook HTTP/1.1"
  std::map<std::string, std::string> fields = {};  // Names in lower case.
  std::string body = {};
};

// The other side of a connection, for the script.
class HttpPeer {
 public:
  // `answered` is told once, before anybody can know the answer, or when the script has ended.
  HttpPeer(int descriptor, const std::atomic<bool>& stopping, std::function<void()> answered)
      : descriptor_(descriptor), stopping_(stopping), answered_(std::move(answered)) {}
  ~HttpPeer();
  HttpPeer(const HttpPeer&) = delete;
  HttpPeer& operator=(const HttpPeer&) = delete;

  void answer(const std::string& status, const std::string& body = {}, const std::string& fields = {});
  // False when the other side has gone.
  bool send(std::string_view bytes);
  void hang_up();
  // True when the other side has gone, or the receiver is stopping; false when neither happened within so long.
  bool wait_until_gone(int milliseconds);

 private:
  void tell_answered();

  const int descriptor_;
  const std::atomic<bool>& stopping_;
  std::function<void()> answered_;
};

class HttpReceiver {
 public:
  using Script = std::function<void(const HttpReceived& request, HttpPeer& peer)>;

  // Port 0: any. Throws when it cannot listen.
  explicit HttpReceiver(Script script, std::uint16_t port = 0);
  ~HttpReceiver();  // Ends every connection.
  HttpReceiver(const HttpReceiver&) = delete;
  HttpReceiver& operator=(const HttpReceiver&) = delete;

  std::string url(const std::string& path = "/") const;
  std::uint16_t port() const { return port_; }

  std::vector<HttpReceived> received() const;
  // Waits until so many requests have come; all of them.
  std::vector<HttpReceived> wait_for(std::size_t count);
  int most_at_once() const;  // Requests that were not answered yet at the same time.

 private:
  void accept_all();
  void serve(int connection);

  const Script script_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::vector<HttpReceived> received_;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
  int at_once_ = 0;
  int most_at_once_ = 0;

  std::thread acceptor_;
};

}  // namespace bide::support
