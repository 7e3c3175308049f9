#include "support/fake_amqp_server.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace bide::support {

namespace {

constexpr std::uint8_t kMethodFrame = 1;
constexpr std::uint8_t kHeaderFrame = 2;
constexpr std::uint8_t kBodyFrame = 3;
constexpr char kFrameEnd = '\xce';

constexpr std::uint16_t kConnection = 10;
constexpr std::uint16_t kChannel = 20;
constexpr std::uint16_t kBasic = 60;
constexpr std::uint16_t kQueue = 50;

template <class Number>
std::string bytes_of(Number number) {
  std::string bytes;
  for (std::size_t i = sizeof number; i-- > 0;) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (const char c : bytes.substr(at, size)) number = number << 8 | static_cast<std::uint8_t>(c);
  return number;
}

std::string short_text(std::string_view text) { return static_cast<char>(text.size()) + std::string(text); }
std::string long_text(std::string_view text) { return bytes_of(static_cast<std::uint32_t>(text.size())) + std::string(text); }

std::string short_text_at(std::string_view bytes, std::size_t& at) {
  const auto size = static_cast<std::uint8_t>(bytes.at(at));
  std::string text(bytes.substr(at + 1, size));
  at += 1 + size;
  return text;
}

}  // namespace

struct FakeAmqpServer::Frame {
  std::uint8_t type = 0;
  std::uint16_t channel = 0;
  std::string payload = {};
};

void FakeAmqpServer::Client::send_method(std::uint16_t channel, std::uint16_t of_class, std::uint16_t method,
                                         std::string_view arguments) {
  const std::string payload = bytes_of(of_class) + bytes_of(method) + std::string(arguments);
  const std::string frame = bytes_of(kMethodFrame) + bytes_of(channel) +
                            bytes_of(static_cast<std::uint32_t>(payload.size())) + payload + kFrameEnd;
  // A client that is gone is noticed by the next read.
  static_cast<void>(::send(descriptor_, frame.data(), frame.size(), MSG_NOSIGNAL));
}

void FakeAmqpServer::Client::confirm(std::uint16_t channel, std::uint64_t tag, bool multiple) {
  send_method(channel, kBasic, 80, bytes_of(tag) + static_cast<char>(multiple ? 1 : 0));
}

void FakeAmqpServer::Client::close_channel(std::uint16_t channel) {
  send_method(channel, kChannel, 40, bytes_of(std::uint16_t{406}) + short_text("as the script says") +
                                         bytes_of(std::uint16_t{0}) + bytes_of(std::uint16_t{0}));
}

FakeAmqpServer::FakeAmqpServer(Script& script) : script_(script), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), 16) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the fake AMQP server cannot listen");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

FakeAmqpServer::~FakeAmqpServer() {
  stop_.wake();
  thread_.join();
}

void FakeAmqpServer::run() {
  while (true) {
    std::array<platform::Readiness, 2> ready = {platform::Readiness{stop_.descriptor(), true, false},
                                                platform::Readiness{listener_.get(), true, false}};
    platform::wait_ready(ready, std::nullopt);
    if (ready[0].read) return;
    const platform::Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    tags_.clear();
    incomplete_.clear();
    missing_body_.clear();
    serve(client.get());
  }
}

// False when the client has gone, or the server is to end.
bool FakeAmqpServer::read_exactly(int descriptor, std::string& bytes, std::size_t size) const {
  bytes.clear();
  while (bytes.size() < size) {
    std::array<platform::Readiness, 2> ready = {platform::Readiness{stop_.descriptor(), true, false},
                                                platform::Readiness{descriptor, true, false}};
    platform::wait_ready(ready, std::nullopt);
    if (ready[0].read) return false;
    std::string piece(size - bytes.size(), '\0');
    const ssize_t count = ::recv(descriptor, piece.data(), piece.size(), 0);
    if (count <= 0) return false;
    bytes.append(piece, 0, static_cast<std::size_t>(count));
  }
  return true;
}

void FakeAmqpServer::serve(int descriptor) {
  Client client(descriptor);
  std::string bytes;
  if (!read_exactly(descriptor, bytes, 8)) return;  // "AMQP" 0 0 9 1
  const std::string version = short_text("version") + "S" + long_text("3.10.8");
  client.send_method(0, kConnection, 10, std::string("\0\x09", 2) + long_text(version) + long_text("PLAIN") + long_text("en_US"));
  while (read_exactly(descriptor, bytes, 7)) {
    Frame frame{static_cast<std::uint8_t>(bytes[0]), static_cast<std::uint16_t>(number_at(bytes, 1, 2)), {}};
    if (!read_exactly(descriptor, frame.payload, static_cast<std::size_t>(number_at(bytes, 3, 4)) + 1)) return;
    frame.payload.pop_back();  // The end of the frame.
    if (frame.type == kMethodFrame) {
      take_method(client, frame);
      continue;
    }
    if (frame.type == kHeaderFrame) missing_body_[frame.channel] = number_at(frame.payload, 4, 8);
    if (frame.type == kBodyFrame) missing_body_[frame.channel] -= frame.payload.size();
    if ((frame.type == kHeaderFrame || frame.type == kBodyFrame) && missing_body_[frame.channel] == 0) {
      script_.published(client, std::exchange(incomplete_[frame.channel], {}));
    }
  }
}

void FakeAmqpServer::take_method(Client& client, const Frame& frame) {
  const auto of_class = static_cast<std::uint16_t>(number_at(frame.payload, 0, 2));
  const auto method = static_cast<std::uint16_t>(number_at(frame.payload, 2, 2));
  std::size_t at = 6;  // Behind a reserved number.
  if (of_class == kConnection && method == 11) {  // start-ok
    client.send_method(0, kConnection, 30, bytes_of(std::uint16_t{2047}) + bytes_of(std::uint32_t{131072}) + bytes_of(std::uint16_t{0}));
  } else if (of_class == kConnection && method == 31) {  // tune-ok
  } else if (of_class == kConnection && method == 40) {  // open
    client.send_method(0, kConnection, 41, short_text(""));
  } else if (of_class == kChannel && method == 10) {  // open
    tags_[frame.channel] = 0;
    client.send_method(frame.channel, kChannel, 11, long_text(""));
  } else if (of_class == kChannel && method == 41) {  // close-ok
    script_.channel_closed(client, frame.channel);
  } else if (of_class == kQueue && method == 10) {  // declare
    const std::string name = short_text_at(frame.payload, at);
    client.send_method(frame.channel, kQueue, 11, short_text(name) + bytes_of(std::uint32_t{0}) + bytes_of(std::uint32_t{0}));
  } else if (of_class == kBasic && method == 40) {  // publish
    Published& message = incomplete_[frame.channel];
    message = {frame.channel, ++tags_[frame.channel], {}, {}};
    message.exchange = short_text_at(frame.payload, at);
    message.key = short_text_at(frame.payload, at);
  } else if (of_class == kQueue && method == 40) {  // delete: the answer counts messages.
    client.send_method(frame.channel, kQueue, 41, bytes_of(std::uint32_t{0}));
  } else {  // Everything else that a publisher asks for is answered by the next method of its class, without arguments.
    client.send_method(frame.channel, of_class, static_cast<std::uint16_t>(method + 1), "");
  }
}

}  // namespace bide::support
