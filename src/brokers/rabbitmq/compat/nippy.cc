#include "brokers/rabbitmq/compat/nippy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include "brokers/rabbitmq/compat/lz4_block.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostUnpacked = 256 * 1024 * 1024;

// How what follows a type is counted, and what it is.
enum class Count : std::uint8_t { kFixed, kSmall, kSmallUnsigned, kMedium, kLarge };
enum class What : std::uint8_t {
  kNil,
  kTrue,
  kFalse,
  kLong,
  kUnsignedLong,
  kNegatedLong,
  kFloat,
  kDouble,
  kCharacter,
  kUuid,
  kInstant,
  kString,
  kKeyword,
  kSymbol,
  kBytes,
  kVector,
  kList,
  kSet,
  kMap,
  kOpaqueBytes,
  kOpaqueItems,
  kNamedItem,
};

struct Type {
  std::uint8_t id;
  What what;
  Count count;
  std::uint8_t size;  // kFixed: bytes, items or entries. Otherwise bytes for each that is counted.
};

constexpr std::array kTypes = {
    Type{3, What::kNil, Count::kFixed, 0},
    Type{8, What::kTrue, Count::kFixed, 0},
    Type{9, What::kFalse, Count::kFixed, 0},
    Type{10, What::kCharacter, Count::kFixed, 2},
    // Numbers.
    Type{0, What::kLong, Count::kFixed, 0},
    Type{40, What::kLong, Count::kFixed, 1},
    Type{41, What::kLong, Count::kFixed, 2},
    Type{42, What::kLong, Count::kFixed, 4},
    Type{43, What::kLong, Count::kFixed, 8},
    Type{100, What::kLong, Count::kFixed, 1},
    Type{101, What::kLong, Count::kFixed, 2},
    Type{102, What::kLong, Count::kFixed, 4},
    Type{87, What::kUnsignedLong, Count::kFixed, 1},
    Type{88, What::kUnsignedLong, Count::kFixed, 2},
    Type{89, What::kUnsignedLong, Count::kFixed, 4},
    Type{93, What::kNegatedLong, Count::kFixed, 1},
    Type{94, What::kNegatedLong, Count::kFixed, 2},
    Type{95, What::kNegatedLong, Count::kFixed, 4},
    Type{55, What::kDouble, Count::kFixed, 0},
    Type{60, What::kFloat, Count::kFixed, 4},
    Type{61, What::kDouble, Count::kFixed, 8},
    Type{91, What::kUuid, Count::kFixed, 16},
    Type{90, What::kInstant, Count::kFixed, 8},
    // Texts and bytes.
    Type{34, What::kString, Count::kFixed, 0},
    Type{105, What::kString, Count::kSmall, 1},
    Type{96, What::kString, Count::kSmallUnsigned, 1},
    Type{16, What::kString, Count::kMedium, 1},
    Type{13, What::kString, Count::kLarge, 1},
    Type{106, What::kKeyword, Count::kSmall, 1},
    Type{85, What::kKeyword, Count::kMedium, 1},
    Type{77, What::kKeyword, Count::kLarge, 1},
    Type{14, What::kKeyword, Count::kLarge, 1},
    Type{56, What::kSymbol, Count::kSmall, 1},
    Type{86, What::kSymbol, Count::kMedium, 1},
    Type{78, What::kSymbol, Count::kLarge, 1},
    Type{57, What::kSymbol, Count::kLarge, 1},
    Type{53, What::kBytes, Count::kFixed, 0},
    Type{7, What::kBytes, Count::kSmall, 1},
    Type{15, What::kBytes, Count::kMedium, 1},
    Type{2, What::kBytes, Count::kLarge, 1},
    // Collections.
    Type{17, What::kVector, Count::kFixed, 0},
    Type{113, What::kVector, Count::kFixed, 2},
    Type{114, What::kVector, Count::kFixed, 3},
    Type{103, What::kVector, Count::kFixed, 2},
    Type{110, What::kVector, Count::kSmall, 1},
    Type{97, What::kVector, Count::kSmallUnsigned, 1},
    Type{69, What::kVector, Count::kMedium, 1},
    Type{21, What::kVector, Count::kLarge, 1},
    Type{35, What::kList, Count::kFixed, 0},
    Type{36, What::kList, Count::kSmall, 1},
    Type{54, What::kList, Count::kMedium, 1},
    Type{20, What::kList, Count::kLarge, 1},
    Type{37, What::kList, Count::kFixed, 0},
    Type{38, What::kList, Count::kSmall, 1},
    Type{39, What::kList, Count::kMedium, 1},
    Type{24, What::kList, Count::kLarge, 1},
    Type{18, What::kSet, Count::kFixed, 0},
    Type{111, What::kSet, Count::kSmall, 1},
    Type{98, What::kSet, Count::kSmallUnsigned, 1},
    Type{32, What::kSet, Count::kMedium, 1},
    Type{23, What::kSet, Count::kLarge, 1},
    Type{28, What::kSet, Count::kLarge, 1},
    Type{19, What::kMap, Count::kFixed, 0},
    Type{112, What::kMap, Count::kSmall, 1},
    Type{99, What::kMap, Count::kSmallUnsigned, 1},
    Type{33, What::kMap, Count::kMedium, 1},
    Type{30, What::kMap, Count::kLarge, 1},
    Type{31, What::kMap, Count::kLarge, 1},
    // Of these only the end is known.
    Type{92, What::kOpaqueBytes, Count::kFixed, 8},
    Type{79, What::kOpaqueBytes, Count::kFixed, 12},
    Type{83, What::kOpaqueBytes, Count::kFixed, 12},
    Type{84, What::kOpaqueBytes, Count::kFixed, 12},
    Type{44, What::kOpaqueBytes, Count::kLarge, 1},
    Type{45, What::kOpaqueBytes, Count::kLarge, 1},
    Type{47, What::kOpaqueBytes, Count::kSmall, 1},
    Type{51, What::kOpaqueBytes, Count::kMedium, 1},
    Type{52, What::kOpaqueBytes, Count::kLarge, 1},
    Type{118, What::kOpaqueBytes, Count::kLarge, 4},
    Type{119, What::kOpaqueBytes, Count::kLarge, 8},
    Type{120, What::kOpaqueBytes, Count::kLarge, 4},
    Type{121, What::kOpaqueBytes, Count::kLarge, 8},
    Type{58, What::kOpaqueItems, Count::kFixed, 1},
    Type{71, What::kOpaqueItems, Count::kFixed, 1},
    Type{26, What::kOpaqueItems, Count::kLarge, 1},
    Type{115, What::kOpaqueItems, Count::kLarge, 1},
    Type{48, What::kNamedItem, Count::kSmall, 1},
    Type{49, What::kNamedItem, Count::kMedium, 1},
};

const Type* find_type(std::uint8_t id) {
  static const std::array<const Type*, 256> by_id = [] {
    std::array<const Type*, 256> table{};
    for (const Type& type : kTypes) table[type.id] = &type;
    return table;
  }();
  return by_id[id];
}

std::size_t width_of(Count count) {
  switch (count) {
    case Count::kFixed:
      return 0;
    case Count::kSmall:
    case Count::kSmallUnsigned:
      return 1;
    case Count::kMedium:
      return 2;
    case Count::kLarge:
      return 4;
  }
  return 0;
}

Error damaged(std::size_t at, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "damaged Nippy data at byte " + std::to_string(at) + ": " + why};
}

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<std::uint8_t>(c);
  return value;
}

std::int64_t sign_extend(std::uint64_t value, std::size_t width) {
  if (width == 0 || width >= 8) return static_cast<std::int64_t>(value);
  const std::uint64_t sign = std::uint64_t{1} << (8 * width - 1);
  return static_cast<std::int64_t>((value ^ sign) - sign);
}

}  // namespace

Result<std::string> unwrap_nippy(std::string_view frozen) {
  if (frozen.size() < kNippyHeader.size() || frozen.substr(0, 3) != kNippyHeader.substr(0, 3)) {
    return Error{ErrorCode::kInvalidArgument, "not Nippy: it does not begin with NPY"};
  }
  const std::uint8_t how = static_cast<std::uint8_t>(frozen[3]);
  const std::string_view rest = frozen.substr(4);
  if (how == 0) return std::string(rest);
  if (how != 8) {
    return Error{ErrorCode::kUnsupported, "Nippy data that is encrypted, or packed by anything but LZ4 (header " +
                                              std::to_string(how) + "), cannot be read"};
  }
  if (rest.size() < 4) return damaged(4, "cut off");
  const std::uint64_t size = big_endian(rest.substr(0, 4));
  std::optional<std::string> unpacked;
  if (size <= kMostUnpacked) unpacked = unpack_lz4_block(rest.substr(4), static_cast<std::size_t>(size));
  if (!unpacked) return damaged(8, "the LZ4 block does not unpack to its " + std::to_string(size) + " bytes");
  return std::move(*unpacked);
}

bool NippyReader::take(std::size_t size, std::string_view& bytes) {
  if (size > data_.size() - at_) return false;
  bytes = data_.substr(at_, size);
  at_ += size;
  return true;
}

bool NippyReader::number(std::size_t width, std::uint64_t& value) {
  std::string_view bytes;
  if (!take(width, bytes)) return false;
  value = big_endian(bytes);
  return true;
}

namespace {

// Null: the type cannot be read past. The count is checked by whoever reads what it counts.
std::optional<std::uint64_t> count_of(Count kind, std::uint64_t raw, std::uint8_t fixed) {
  switch (kind) {
    case Count::kFixed:
      return fixed;
    case Count::kSmall:
      return raw;
    case Count::kSmallUnsigned:
      return raw ^ 0x80;
    case Count::kMedium:
      return raw;
    case Count::kLarge:
      if (raw > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) return std::nullopt;
      return raw;
  }
  return std::nullopt;
}

}  // namespace

Result<std::size_t> NippyReader::map_size() {
  const std::size_t start = at_;
  std::uint64_t id = 0;
  if (!number(1, id)) return damaged(start, "cut off");
  const Type* type = find_type(static_cast<std::uint8_t>(id));
  if (type == nullptr || type->what != What::kMap) return damaged(start, "a map is wanted");
  std::uint64_t raw = 0;
  if (!number(width_of(type->count), raw)) return damaged(at_, "cut off");
  const std::optional<std::uint64_t> count = count_of(type->count, raw, type->size);
  if (!count || *count > data_.size() - at_) return damaged(start, "more entries than bytes");
  return static_cast<std::size_t>(*count);
}

Result<ClojureValue> NippyReader::next(int depth) {
  const std::size_t start = at_;
  if (depth > kDeepest) return damaged(start, "nested more than " + std::to_string(kDeepest) + " deep");
  std::uint64_t id = 0;
  if (!number(1, id)) return damaged(start, "cut off");
  // Metadata stands before what it is about, and is of no use here.
  if (id == 25) {
    if (Result<ClojureValue> meta = next(depth + 1); !meta) return meta;
    return next(depth + 1);
  }
  if (id == 4) {
    std::uint64_t flag = 0;
    if (!number(1, flag)) return damaged(at_, "cut off");
    return ClojureValue{flag != 0};
  }
  const Type* type = find_type(static_cast<std::uint8_t>(id));
  if (type == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "Nippy type " + std::to_string(id) + " at byte " + std::to_string(start) + " cannot be read"};
  }
  std::uint64_t raw = 0;
  if (!number(width_of(type->count), raw)) return damaged(at_, "cut off");
  const std::optional<std::uint64_t> counted = count_of(type->count, raw, type->size);
  const std::size_t left = data_.size() - at_;
  // Whatever is counted takes a byte at least.
  if (!counted || *counted > left) return damaged(start, "a count beyond the end");
  const std::size_t count = static_cast<std::size_t>(*counted);

  const auto items = [&](std::size_t how_many, std::vector<ClojureValue>& into) -> Status {
    for (std::size_t i = 0; i < how_many; ++i) {
      Result<ClojureValue> item = next(depth + 1);
      if (!item) return item.error();
      into.push_back(std::move(*item));
    }
    return {};
  };
  const auto collection = [&](auto values) -> Result<ClojureValue> {
    if (Status read = items(count, values.items); !read) return read.error();
    return ClojureValue{std::move(values)};
  };
  const auto whole = [&] { return ClojureValue{ClojureOpaque{std::string(data_.substr(start, at_ - start))}}; };

  std::string_view bytes;
  switch (type->what) {
    case What::kNil:
      return ClojureValue{};
    case What::kTrue:
      return ClojureValue{true};
    case What::kFalse:
      return ClojureValue{false};
    case What::kLong:
      take(count, bytes);
      return ClojureValue{sign_extend(big_endian(bytes), count)};
    case What::kUnsignedLong:
    case What::kNegatedLong: {
      take(count, bytes);
      const auto size = static_cast<std::int64_t>(big_endian(bytes) ^ (std::uint64_t{1} << (8 * count - 1)));
      return ClojureValue{type->what == What::kUnsignedLong ? size : -size};
    }
    case What::kFloat:
      take(count, bytes);
      return ClojureValue{static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(big_endian(bytes))))};
    case What::kDouble:
      take(count, bytes);
      return ClojureValue{std::bit_cast<double>(big_endian(bytes))};
    case What::kCharacter:
      take(count, bytes);
      return ClojureValue{ClojureCharacter{static_cast<std::uint16_t>(big_endian(bytes))}};
    case What::kUuid: {
      take(count, bytes);
      ClojureUuid uuid;
      std::copy(bytes.begin(), bytes.end(), uuid.bytes.begin());
      return ClojureValue{uuid};
    }
    case What::kInstant:
      take(count, bytes);
      return ClojureValue{ClojureInstant{sign_extend(big_endian(bytes), 8)}};
    case What::kString:
      take(count, bytes);
      return ClojureValue{std::string(bytes)};
    case What::kKeyword:
      take(count, bytes);
      return ClojureValue{ClojureKeyword{std::string(bytes)}};
    case What::kSymbol:
      take(count, bytes);
      return ClojureValue{ClojureSymbol{std::string(bytes)}};
    case What::kBytes:
      take(count, bytes);
      return ClojureValue{ClojureBytes{std::string(bytes)}};
    case What::kVector:
      return collection(ClojureVector());
    case What::kList:
      return collection(ClojureList());
    case What::kSet:
      return collection(ClojureSet());
    case What::kMap: {
      ClojureMap map;
      for (std::size_t i = 0; i < count; ++i) {
        Result<ClojureValue> key = next(depth + 1);
        if (!key) return key;
        Result<ClojureValue> value = next(depth + 1);
        if (!value) return value;
        map.entries.emplace_back(std::move(*key), std::move(*value));
      }
      return ClojureValue{std::move(map)};
    }
    case What::kOpaqueBytes: {
      const std::size_t each = type->count == Count::kFixed ? 1 : type->size;
      if (count > left / each || !take(count * each, bytes)) return damaged(start, "a count beyond the end");
      return whole();
    }
    case What::kNamedItem:
      take(count, bytes);
      if (Result<ClojureValue> item = next(depth + 1); !item) return item;
      return whole();
    case What::kOpaqueItems: {
      std::vector<ClojureValue> skipped;
      if (Status read = items(count, skipped); !read) return read.error();
      return whole();
    }
  }
  return damaged(start, "unknown");
}

Result<ClojureValue> thaw(std::string_view frozen) {
  const Result<std::string> data = unwrap_nippy(frozen);
  if (!data) return data.error();
  NippyReader reader(*data);
  Result<ClojureValue> value = reader.next();
  if (value && !reader.done()) return damaged(reader.at(), "something follows the value");
  return value;
}

}  // namespace bide::brokers::rabbitmq::compat
