// KeyedHash: for tables whose keys a caller chooses. Its key is drawn once for each process, so nobody outside can
// compute keys that share a place in a table.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "bide/job_id.h"

namespace bide::platform {

struct HashKey {
  std::uint64_t words[4];

  // The same for the whole process. Safe to call from any thread.
  static const HashKey& of_process();

  std::uint64_t operator()(std::string_view text) const;

  std::uint64_t operator()(const JobId& id) const {
    std::uint64_t high;
    std::uint64_t low;
    std::memcpy(&high, id.bytes().data(), 8);
    std::memcpy(&low, id.bytes().data() + 8, 8);
    // Two ids share the 128 bits of the product with a probability of 2^-64 over the keys, however they were chosen (the
    // NH hash of UMAC); the second product spreads them over all the bits of the result.
    __extension__ using Product = unsigned __int128;
    const Product product = Product{high + words[0]} * (low + words[1]);
    return fold(static_cast<std::uint64_t>(product) ^ words[2], static_cast<std::uint64_t>(product >> 64) ^ words[3]);
  }

  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    __extension__ using Product = unsigned __int128;
    const Product product = Product{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
};

struct KeyedHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return HashKey::of_process()(text); }
  std::size_t operator()(const JobId& id) const { return HashKey::of_process()(id); }
};

template <class Key, class Value>
using KeyedMap = std::unordered_map<Key, Value, KeyedHash, std::equal_to<>>;
template <class Key>
using KeyedSet = std::unordered_set<Key, KeyedHash, std::equal_to<>>;

}  // namespace bide::platform
