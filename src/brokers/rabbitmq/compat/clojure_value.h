// ClojureValue: a piece of Clojure data, as async-worker puts it into its messages. Written as EDN (edn.h) where people
// and handlers see it, as Nippy (nippy.h) on the wire.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace bide::brokers::rabbitmq::compat {

struct ClojureValue;

struct ClojureKeyword {
  std::string name = {};  // Without the colon; "space/name" when it has a namespace.
  friend bool operator==(const ClojureKeyword&, const ClojureKeyword&) = default;
};
struct ClojureSymbol {
  std::string name = {};
  friend bool operator==(const ClojureSymbol&, const ClojureSymbol&) = default;
};
struct ClojureCharacter {
  std::uint16_t unit = 0;  // Of UTF-16.
  friend bool operator==(const ClojureCharacter&, const ClojureCharacter&) = default;
};
struct ClojureBytes {
  std::string bytes = {};
  friend bool operator==(const ClojureBytes&, const ClojureBytes&) = default;
};
struct ClojureUuid {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const ClojureUuid&, const ClojureUuid&) = default;
};
struct ClojureInstant {
  std::int64_t ms = 0;  // Since 1970.
  friend bool operator==(const ClojureInstant&, const ClojureInstant&) = default;
};
struct ClojureVector {
  std::vector<ClojureValue> items;
  friend bool operator==(const ClojureVector&, const ClojureVector&);
};
struct ClojureList {  // Also every other sequence.
  std::vector<ClojureValue> items;
  friend bool operator==(const ClojureList&, const ClojureList&);
};
struct ClojureSet {
  std::vector<ClojureValue> items;  // In the order of the text or of the wire.
  friend bool operator==(const ClojureSet&, const ClojureSet&);
};
struct ClojureMap {
  std::vector<std::pair<ClojureValue, ClojureValue>> entries;
  friend bool operator==(const ClojureMap&, const ClojureMap&);
};
// Something of Nippy whose end is known but not its meaning: all of its bytes, its type first.
struct ClojureOpaque {
  std::string nippy = {};
  friend bool operator==(const ClojureOpaque&, const ClojureOpaque&) = default;
};

// Nothing (monostate) is nil.
struct ClojureValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, ClojureKeyword, ClojureSymbol, ClojureCharacter,
               ClojureBytes, ClojureUuid, ClojureInstant, ClojureVector, ClojureList, ClojureSet, ClojureMap,
               ClojureOpaque>
      value = {};

  friend bool operator==(const ClojureValue&, const ClojureValue&) = default;
};

inline bool operator==(const ClojureVector& a, const ClojureVector& b) { return a.items == b.items; }
inline bool operator==(const ClojureList& a, const ClojureList& b) { return a.items == b.items; }
inline bool operator==(const ClojureSet& a, const ClojureSet& b) { return a.items == b.items; }
inline bool operator==(const ClojureMap& a, const ClojureMap& b) { return a.entries == b.entries; }

}  // namespace bide::brokers::rabbitmq::compat
