// SendQueue: frames on their way into a socket, in order. Knows how much it holds and when some of it last got away.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "platform/local_socket.h"

namespace bide::brokers::shared {

using SharedFrame = std::shared_ptr<const std::string>;

class SendQueue {
 public:
  void add(SharedFrame frame) {
    bytes_ += frame->size();
    added_ += frame->size();
    frames_.push_back(std::move(frame));
  }
  void add(std::string frame) { add(std::make_shared<const std::string>(std::move(frame))); }

  bool empty() const { return frames_.empty(); }
  std::size_t bytes() const { return bytes_; }
  void clear() {
    frames_.clear();
    bytes_ = written_ = 0;
  }

  // All bytes that were added, and those of them that the socket took; clear() changes neither.
  std::uint64_t added() const { return added_; }
  std::uint64_t sent() const { return sent_; }

  enum class Sent { kNothing, kSome, kClosed };

  // As much as the socket takes.
  Sent send_to(platform::LocalSocket& socket) {
    Sent sent = Sent::kNothing;
    while (!frames_.empty()) {
      std::string_view pieces[kPieces];
      std::size_t count = 0;
      for (auto frame = frames_.begin(); frame != frames_.end() && count < kPieces; ++frame) {
        pieces[count] = **frame;
        if (count == 0) pieces[0].remove_prefix(written_);
        ++count;
      }
      const platform::Transfer transfer = socket.send({pieces, count});
      if (transfer.closed) return Sent::kClosed;
      if (transfer.bytes == 0) return sent;
      sent = Sent::kSome;
      drop(transfer.bytes);
    }
    return sent;
  }

 private:
  static constexpr std::size_t kPieces = 64;

  void drop(std::size_t bytes) {
    bytes_ -= bytes;
    sent_ += bytes;
    written_ += bytes;
    while (!frames_.empty() && written_ >= frames_.front()->size()) {
      written_ -= frames_.front()->size();
      frames_.pop_front();
    }
  }

  std::deque<SharedFrame> frames_;
  std::size_t bytes_ = 0;
  std::size_t written_ = 0;  // Of the first frame.
  std::uint64_t added_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace bide::brokers::shared
