// Frames: what goes through the socket of a data directory, in either direction.
//
//   u32 length      of what follows
//   u64 number      of the call, or of the subscription for leases; 0 where there is none
//   u8  type        FrameType
//   ...             the payload, see wire.h
//
//   client                                 server
//   hello {"bide", version}           ->
//                                     <-   hello {"bide", version, capabilities}
//   held_leases {leases}              ->   after a change of owner: leases from the one before
//   enqueue, settle, find ...         ->
//                                     <-   answer {ok or error, value}
//   subscribe {number, options}       ->
//                                     <-   answer, then leases {leases} as often as there are any
//   set_credit {number, credit}       ->
//   unwatch                           ->   with the number of the watch, which is not answered then
//   set_delivery_limit {number, limit} ->
//   mark_delivered {leases}           ->
//   report_progress {lease, progress} ->
//                                     <-   pressure {pressure} when it has changed
//   goodbye                           ->   answers to all calls before it, then the end of the stream
//                                     <-   goodbye: what was not answered before it was not begun
//
// The handshake is the same in every version: two sides of different versions can tell each other so.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/encoding.h"

namespace bide::brokers::shared {

inline constexpr char kSocketName[] = "socket";
inline constexpr std::string_view kMagic = "bide";
inline constexpr std::uint32_t kProtocolVersion = 6;

enum class FrameType : std::uint8_t {
  kHello = 1,
  kGoodbye = 2,
  kAnswer = 3,
  kLeases = 4,
  kPressure = 5,
  kHeldLeases = 6,
  kSubscribe = 7,
  kUnsubscribe = 8,
  kSetCredit = 9,
  kSetDeliveryLimit = 10,
  kMarkDelivered = 11,
  kEnqueue = 16,
  kExtend = 17,
  kSettle = 18,
  kQueues = 19,
  kFind = 20,
  kList = 21,
  kExplain = 22,
  kAudit = 23,
  kWatch = 24,
  kCancel = 25,
  kReschedule = 26,
  kReplay = 27,
  kPause = 28,
  kPurge = 29,
  kUnwatch = 30,
  kSaveBody = 31,
  kPublish = 32,
  kBind = 33,
  kBindings = 34,
  kPutRules = 35,
  kRules = 36,
  kPutSchedule = 37,
  kSchedules = 38,
  kRemoveSchedule = 39,
  kEdit = 40,
  kSaveStep = 41,
  kReportProgress = 42,
  kPauseSchedule = 43,
  kRunSchedule = 44,
  kBackup = 45,
  kBackupInfo = 46,
};

inline constexpr std::size_t kFrameBytes = 64ull << 20;  // The longest frame, without the length itself.
inline constexpr std::size_t kFrameHeader = 13;
inline constexpr std::size_t kReadBytes = 256 << 10;  // Of one read from a socket.
// A batch that is longer than this goes in several frames.
inline constexpr std::size_t kPieceBytes = 24ull << 20;

// A frame with what `fill` writes after the header.
template <class Fill>
std::string make_frame(FrameType type, std::uint64_t number, Fill fill) {
  std::string frame;
  core::Encoder out(frame);
  out.u32(0);
  out.u64(number);
  out.u8(static_cast<std::uint8_t>(type));
  fill(out);
  core::store_little_endian(frame.data(), static_cast<std::uint32_t>(frame.size() - 4));
  return frame;
}
inline std::string make_frame(FrameType type, std::uint64_t number) {
  return make_frame(type, number, [](core::Encoder&) {});
}
inline std::string_view payload_of(const std::string& frame) { return std::string_view(frame).substr(kFrameHeader); }

struct Frame {
  FrameType type = FrameType::kHello;
  std::uint64_t number = 0;
  std::string_view payload = {};  // Until room() is called again.
};

// Bytes in, frames out.
class FrameReader {
 public:
  enum class Next { kFrame, kMore, kTooLong };

  // A place for more bytes. It grows with what has arrived, not with what a frame claims to be.
  char* room(std::size_t size) {
    if (at_ > 0 && (at_ == end_ || at_ >= buffer_.size() / 2)) {
      buffer_.erase(0, at_);
      end_ -= at_;
      at_ = 0;
    }
    if (end_ == 0 && buffer_.size() > kKept) std::string().swap(buffer_);
    if (buffer_.size() < end_ + size) buffer_.resize(end_ + size);
    return buffer_.data() + end_;
  }
  void filled(std::size_t bytes) { end_ += bytes; }

  Next next(Frame& frame) {
    if (end_ - at_ < 4) return Next::kMore;
    const std::uint32_t length = core::load_little_endian<std::uint32_t>(buffer_.data() + at_);
    if (length < kFrameHeader - 4 || length > kFrameBytes) return Next::kTooLong;
    if (end_ - at_ < 4 + length) return Next::kMore;
    const std::string_view bytes(buffer_.data() + at_ + 4, length);
    frame.number = core::load_little_endian<std::uint64_t>(bytes.data());
    frame.type = static_cast<FrameType>(bytes[8]);
    frame.payload = bytes.substr(kFrameHeader - 4);
    at_ += 4 + length;
    return Next::kFrame;
  }

  std::size_t waiting() const { return end_ - at_; }

 private:
  static constexpr std::size_t kKept = 1 << 20;  // What one long frame needed is given back.

  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
};

}  // namespace bide::brokers::shared
