// Nippy: how Clojure data is written by async-worker. The part of it that job messages are made of.
//
//   frozen = 'N' 'P' 'Y' how data      how 0: plain; 8: big-endian length, then one LZ4 block
//   data   = type payload              one byte of type; integers are big-endian
//
// Older versions write small counts and numbers as signed bytes (types 100 to 102, 105, 110 to 112), newer ones
// from 3.3 as unsigned ones shifted by the least signed number (87 to 89, 93 to 99). Both are read. Written are the
// older ones, because every version reads them.
//
// Whatever has a size but no meaning here (records, big numbers, arrays of numbers) is kept as it is; what does not
// even have a size (cached values, custom types) cannot be read past.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "brokers/rabbitmq/compat/clojure_value.h"

namespace bide::brokers::rabbitmq::compat {

inline constexpr std::string_view kNippyHeader{"NPY\0", 4};

// The data behind the header, unpacked. kInvalidArgument: no Nippy, or damaged. kUnsupported: packed or encrypted in
// another way.
Result<std::string> unwrap_nippy(std::string_view frozen);

// Reads one value after another from data without header.
class NippyReader {
 public:
  explicit NippyReader(std::string_view data) : data_(data) {}

  // kInvalidArgument: damaged, cut off or nested too deeply. kUnsupported: a type that cannot be read past.
  Result<ClojureValue> next() { return next(0); }
  // The number of entries of a map whose type comes next, which is read; its keys and values follow.
  Result<std::size_t> map_size();

  std::size_t at() const { return at_; }
  // Goes on elsewhere; not beyond the end.
  void skip_to(std::size_t at) { at_ = at < data_.size() ? at : data_.size(); }
  bool done() const { return at_ == data_.size(); }

 private:
  Result<ClojureValue> next(int depth);
  bool take(std::size_t size, std::string_view& bytes);
  bool number(std::size_t width, std::uint64_t& value);

  std::string_view data_;
  std::size_t at_ = 0;
};

// One whole value, with its header. Anything behind it is damage.
Result<ClojureValue> thaw(std::string_view frozen);

// Without header.
void append_nippy(std::string& out, const ClojureValue& value);
std::string freeze(const ClojureValue& value);

}  // namespace bide::brokers::rabbitmq::compat
