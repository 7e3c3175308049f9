#include "brokers/shared/shared_client.h"

#include <utility>

#include "brokers/shared/wire.h"
#include "platform/clock.h"

namespace bide::brokers::shared {

namespace {

Error no_answer(const std::string& directory) {
  return {ErrorCode::kUnavailable, "the owner of data directory " + directory + " does not answer"};
}

Error other_version(const std::string& directory, std::uint32_t version) {
  const bool newer = version > kProtocolVersion;
  return {newer ? ErrorCode::kNewerVersion : ErrorCode::kUnsupported,
          "the process that owns data directory " + directory + " runs " + (newer ? "a newer" : "an older") +
              " bide: " + (newer ? "upgrade this one" : "restart it with this version")};
}

}  // namespace

Result<OwnerConnection> connect_to_owner(const std::string& directory, Milliseconds at_most) {
  const std::int64_t deadline = platform::now_ms() + at_most.count();
  auto socket = platform::LocalSocket::connect(directory, kSocketName);
  if (!socket) {
    if (socket.error().code == ErrorCode::kNotFound) return no_answer(directory);
    return socket.error();
  }
  OwnerConnection connected{std::move(*socket), {}, {}};
  const std::string hello = make_frame(FrameType::kHello, 0, [](Encoder& out) {
    out.string(kMagic);
    out.u32(kProtocolVersion);
  });
  const std::string_view piece = hello;
  if (connected.socket.send({&piece, 1}).bytes != hello.size()) return no_answer(directory);
  // No stranger can have made the socket, unless the directory is open to strangers.
  if (!connected.socket.is_trusted()) {
    return Error{ErrorCode::kPermissionDenied, "data directory " + directory + " is owned by another user's process"};
  }
  Frame frame;
  FrameReader::Next next = FrameReader::Next::kMore;
  while ((next = connected.incoming.next(frame)) == FrameReader::Next::kMore) {
    const std::int64_t left = deadline - platform::now_ms();
    platform::Readiness waited{connected.socket.descriptor(), true, false};
    platform::wait_ready({&waited, 1}, Milliseconds(left));
    if (!waited.read && left <= 0) return no_answer(directory);
    constexpr std::size_t kBytes = 4096;
    const platform::Transfer transfer = connected.socket.receive(connected.incoming.room(kBytes), kBytes);
    if (transfer.closed) return no_answer(directory);
    connected.incoming.filled(transfer.bytes);
  }
  Decoder in(frame.payload);
  const std::string_view magic = in.string();
  const std::uint32_t version = in.u32();
  if (next != FrameReader::Next::kFrame || frame.type != FrameType::kHello || !in.ok() || magic != kMagic) {
    return no_answer(directory);
  }
  if (version != kProtocolVersion) return other_version(directory, version);
  connected.capabilities = take<Capabilities>(in);
  if (!in.done()) return no_answer(directory);
  return connected;
}

}  // namespace bide::brokers::shared
