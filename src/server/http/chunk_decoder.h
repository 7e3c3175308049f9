// ChunkDecoder: the chunked transfer coding, strictly.
//
//   chunk = 1*15HEXDIG [ ";" extension ] CRLF data CRLF      last = 1*"0" [ ";" extension ] CRLF CRLF
//
// Extensions are short and ignored; fields after the last chunk (trailers) are refused.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bide::server {

class ChunkDecoder {
 public:
  enum class Event : std::uint8_t { kMore, kSize, kData, kEnd, kMalformed, kTrailers };

  // Consumes from the front of `bytes` up to the next event: a size that has been announced, data that has come (then `data`
  // is that part of `bytes`), the end. kMore: all of them are consumed. Nothing comes after kEnd and what is refused.
  Event next(std::string_view& bytes, std::string_view& data);

  std::uint64_t size() const { return size_; }  // kSize: of the chunk that begins.

 private:
  enum class State : std::uint8_t { kSize, kExtension, kSizeEnd, kData, kDataEnd, kDataEndLine, kLast, kLastLine };
  Event on_size_line_end();

  State state_ = State::kSize;
  std::uint64_t size_ = 0;
  std::uint64_t left_ = 0;  // Of the data.
  std::size_t digits_ = 0;
  std::size_t extension_ = 0;
};

}  // namespace bide::server
