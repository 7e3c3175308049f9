// FakeAmqpServer: as much of an AMQP 0-9-1 server as a publisher needs, which confirms and closes what a script tells it
// to, when it tells it to: a real server cannot be made to answer late. It takes one connection at a time, grants every
// request (open, declare, bind, confirm.select ...) and keeps no message.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>

#include "platform/descriptor.h"
#include "platform/local_socket.h"

namespace bide::support {

class FakeAmqpServer {
 public:
  struct Published {
    std::uint16_t channel = 0;
    std::uint64_t tag = 0;  // As the publisher counts: from 1 on each channel that was opened.
    std::string exchange = {};
    std::string key = {};
  };
  // The other end of the connection. Used by a script, within its calls.
  class Client {
   public:
    void confirm(std::uint16_t channel, std::uint64_t tag, bool multiple);  // basic.ack
    void close_channel(std::uint16_t channel);                              // As if for a mistake: 406.

   private:
    friend class FakeAmqpServer;
    explicit Client(int descriptor) : descriptor_(descriptor) {}
    void send_method(std::uint16_t channel, std::uint16_t of_class, std::uint16_t method, std::string_view arguments);

    const int descriptor_;
  };
  // Called on the server's thread.
  class Script {
   public:
    virtual ~Script() = default;
    virtual void published(Client& client, const Published& message) = 0;
    // The client has answered close_channel(), and so has read everything that was sent before it.
    virtual void channel_closed(Client& client, std::uint16_t channel) = 0;
  };

  // Listens on a port of loopback that it chooses.
  explicit FakeAmqpServer(Script& script);
  ~FakeAmqpServer();
  FakeAmqpServer(const FakeAmqpServer&) = delete;
  FakeAmqpServer& operator=(const FakeAmqpServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  struct Frame;

  void run();
  void serve(int descriptor);
  bool read_exactly(int descriptor, std::string& bytes, std::size_t size) const;
  void take_method(Client& client, const Frame& frame);

  Script& script_;
  platform::Descriptor listener_;
  platform::Waker stop_;
  std::uint16_t port_ = 0;

  // ---- The thread's own.
  std::map<std::uint16_t, std::uint64_t> tags_;         // The newest of each channel.
  std::map<std::uint16_t, Published> incomplete_;       // basic.publish, whose content has not come.
  std::map<std::uint16_t, std::uint64_t> missing_body_;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace bide::support
