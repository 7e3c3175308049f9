// Writing. Only what every version of Nippy reads.

#include <bit>
#include <limits>

#include "brokers/rabbitmq/compat/nippy.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

void append_big_endian(std::string& out, std::uint64_t value, std::size_t width) {
  for (std::size_t i = width; i-- > 0;) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

constexpr std::size_t kByteCount = 127;
constexpr std::size_t kShortCount = 32767;

struct Ids {
  std::uint8_t none;
  std::uint8_t small;
  std::uint8_t medium;
  std::uint8_t large;
};

void append_counted(std::string& out, const Ids& ids, std::size_t count) {
  if (count == 0 && ids.none != 0) {
    out.push_back(static_cast<char>(ids.none));
  } else if (count <= kByteCount) {
    out.push_back(static_cast<char>(ids.small));
    append_big_endian(out, count, 1);
  } else if (count <= kShortCount) {
    out.push_back(static_cast<char>(ids.medium));
    append_big_endian(out, count, 2);
  } else {
    out.push_back(static_cast<char>(ids.large));
    append_big_endian(out, count, 4);
  }
}

struct Writer {
  std::string& out;

  void type(std::uint8_t id) const { out.push_back(static_cast<char>(id)); }
  void text(const Ids& ids, const std::string& bytes) const {
    append_counted(out, ids, bytes.size());
    out += bytes;
  }
  void items(const std::vector<ClojureValue>& values) const {
    for (const ClojureValue& value : values) append_nippy(out, value);
  }

  void operator()(std::monostate) const { type(3); }
  void operator()(bool flag) const { type(flag ? 8 : 9); }
  void operator()(std::int64_t number) const {
    const auto bits = static_cast<std::uint64_t>(number);
    if (number == 0) return type(0);
    if (number >= -128 && number <= 127) return type(100), append_big_endian(out, bits, 1);
    if (number >= -32768 && number <= 32767) return type(101), append_big_endian(out, bits, 2);
    if (number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max()) {
      return type(102), append_big_endian(out, bits, 4);
    }
    type(43), append_big_endian(out, bits, 8);
  }
  void operator()(double number) const { type(61), append_big_endian(out, std::bit_cast<std::uint64_t>(number), 8); }
  void operator()(const std::string& bytes) const { text({34, 105, 16, 13}, bytes); }
  void operator()(const ClojureKeyword& keyword) const { text({0, 106, 85, 14}, keyword.name); }
  void operator()(const ClojureSymbol& symbol) const { text({0, 56, 86, 57}, symbol.name); }
  void operator()(const ClojureCharacter& character) const { type(10), append_big_endian(out, character.unit, 2); }
  void operator()(const ClojureBytes& bytes) const { text({0, 7, 15, 2}, bytes.bytes); }
  void operator()(const ClojureUuid& uuid) const {
    type(91);
    for (const std::uint8_t byte : uuid.bytes) out.push_back(static_cast<char>(byte));
  }
  void operator()(const ClojureInstant& instant) const {
    type(90), append_big_endian(out, static_cast<std::uint64_t>(instant.ms), 8);
  }
  void operator()(const ClojureVector& vector) const {
    if (vector.items.size() == 2)
      type(113);
    else if (vector.items.size() == 3)
      type(114);
    else
      append_counted(out, {17, 110, 69, 21}, vector.items.size());
    items(vector.items);
  }
  void operator()(const ClojureList& list) const {
    append_counted(out, {35, 36, 54, 20}, list.items.size()), items(list.items);
  }
  void operator()(const ClojureSet& set) const {
    append_counted(out, {18, 111, 32, 23}, set.items.size()), items(set.items);
  }
  void operator()(const ClojureMap& map) const {
    append_counted(out, {19, 112, 33, 30}, map.entries.size());
    for (const auto& [key, value] : map.entries) append_nippy(out, key), append_nippy(out, value);
  }
  void operator()(const ClojureOpaque& opaque) const { out += opaque.nippy; }
};

}  // namespace

void append_nippy(std::string& out, const ClojureValue& value) { std::visit(Writer{out}, value.value); }

std::string freeze(const ClojureValue& value) {
  std::string out(kNippyHeader);
  append_nippy(out, value);
  return out;
}

}  // namespace bide::brokers::rabbitmq::compat
