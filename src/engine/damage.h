// Damage: a place in the store that cannot be read, as operators are told of it.

#pragma once

#include <cstdint>
#include <string>

namespace bide::engine {

struct Damage {
  std::string file;
  std::uint64_t offset = 0;
  std::string text;  // One line, with file, offset and what follows from it.
};

}  // namespace bide::engine
