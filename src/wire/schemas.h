// Schemas: what the JSON in this folder looks like, as JSON Schema (2020-12), for the OpenAPI document. Kept beside the
// code that writes it; a test holds real answers against them.

#pragma once

#include <span>
#include <string_view>

namespace bide::wire {

struct Schema {
  std::string_view name;
  std::string_view json;  // References others as #/components/schemas/NAME.
};

std::span<const Schema> schemas();

}  // namespace bide::wire
