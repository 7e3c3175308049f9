#include "server/http/chunk_decoder.h"

#include <algorithm>

#include "core/text.h"

namespace bide::server {

namespace {

constexpr std::size_t kMostDigits = 15;  // Still a number for everybody.
constexpr std::size_t kMostExtension = 256;

}  // namespace

ChunkDecoder::Event ChunkDecoder::on_size_line_end() {
  digits_ = 0;
  extension_ = 0;
  left_ = size_;
  state_ = size_ == 0 ? State::kLast : State::kData;
  return Event::kSize;
}

ChunkDecoder::Event ChunkDecoder::next(std::string_view& bytes, std::string_view& data) {
  while (!bytes.empty()) {
    if (state_ == State::kData) {
      data = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size())));
      bytes.remove_prefix(data.size());
      left_ -= data.size();
      if (left_ == 0) state_ = State::kDataEnd;
      return Event::kData;
    }
    const char c = bytes.front();
    bytes.remove_prefix(1);
    switch (state_) {
      case State::kSize:
        if (const int value = core::hex_value(c); value >= 0) {
          if (++digits_ > kMostDigits) return Event::kMalformed;
          size_ = (digits_ == 1 ? 0 : size_ * 16) + static_cast<std::uint64_t>(value);
        } else if (digits_ > 0 && (c == '\r' || c == ';')) {
          state_ = c == ';' ? State::kExtension : State::kSizeEnd;
        } else {
          return Event::kMalformed;
        }
        break;
      case State::kExtension:
        if (c == '\r') {
          state_ = State::kSizeEnd;
        } else if (++extension_ > kMostExtension || (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) {
          return Event::kMalformed;
        }
        break;
      case State::kSizeEnd:
        return c == '\n' ? on_size_line_end() : Event::kMalformed;
      case State::kDataEnd:
        if (c != '\r') return Event::kMalformed;
        state_ = State::kDataEndLine;
        break;
      case State::kDataEndLine:
        if (c != '\n') return Event::kMalformed;
        state_ = State::kSize;
        break;
      case State::kLast:
        if (c != '\r') return Event::kTrailers;
        state_ = State::kLastLine;
        break;
      case State::kLastLine:
        return c == '\n' ? Event::kEnd : Event::kMalformed;
      case State::kData:
        break;
    }
  }
  return Event::kMore;
}

}  // namespace bide::server
