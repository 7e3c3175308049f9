// BatchReader: reads the batches of one segment in order, a large window at a time, and verifies each.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "bide/result.h"
#include "engine/journal/layout.h"
#include "platform/disk.h"

namespace bide::engine::journal {

// Memory that grows and is not cleared.
class ReadBuffer {
 public:
  char* data() { return bytes_.get(); }
  std::size_t capacity() const { return capacity_; }
  // Keeps the first `keep` bytes.
  void grow(std::size_t capacity, std::size_t keep);
  void release();

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
};

class BatchReader {
 public:
  enum class Found { kBatch, kEnd, kZeros, kInvalid };

  static constexpr std::size_t kWindowBytes = 1 << 20;

  // Reads from `offset` up to `limit`, which is at most the size of the file. `buffer` may be used again by the next
  // reader: what is in it is lost.
  BatchReader(platform::File& file, Address base, std::uint64_t offset, std::uint64_t limit, ReadBuffer& buffer,
              std::size_t window = kWindowBytes);

  // kBatch: the accessors show it. kEnd: the limit is reached. kZeros: nothing but zeros from here to the limit.
  // kInvalid: what begins here is not a whole batch.
  Result<Found> next();

  // Whether next() can tell without reading more.
  bool has_next() const;

  // In the file, of the batch that was found, or of the place where there is none.
  std::uint64_t offset() const { return offset_; }
  Address address() const { return base_ + offset_; }
  const BatchHeader& header() const { return header_; }
  std::string_view batch() const { return batch_; }

 private:
  // At least `bytes` from offset_ on are in the buffer, unless the file ends before.
  Status fill(std::size_t bytes);
  std::string_view available() { return {buffer_.data() + begin_, end_ - begin_}; }
  Result<Found> zeros_or_invalid();

  platform::File& file_;
  const Address base_;
  const std::uint64_t limit_;
  ReadBuffer& buffer_;
  const std::size_t window_;

  std::uint64_t offset_;
  std::size_t begin_ = 0;  // Of offset_ in the buffer.
  std::size_t end_ = 0;    // Of what has been read into the buffer.
  BatchHeader header_;
  std::string_view batch_;
};

// The greatest synced point that any batch header in this range of a segment tells. Looks at every place where a batch
// could begin, so it finds them behind damage.
Result<Address> newest_synced_point(platform::File& file, Address base, std::uint64_t offset, std::uint64_t limit,
                                    ReadBuffer& buffer);

// How many bytes from `offset` on there are up to the last one that is not zero.
Result<std::uint64_t> bytes_before_zeros(platform::File& file, std::uint64_t offset, std::uint64_t limit,
                                         ReadBuffer& buffer);

}  // namespace bide::engine::journal
