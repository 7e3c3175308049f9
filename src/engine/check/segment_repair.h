// repair_segment: makes a row of whole batches of what is left of a segment. Nothing moves, so every address stays
// right: what cannot be read becomes a record of type mark, which nobody looks at.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bide::engine::check {

// What could not be read.
struct Loss {
  std::string file = {};
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string text = {};
  std::uint64_t records_after = 0;  // Whole ones behind it, in the same file.
};

struct SegmentRepair {
  bool changed = false;
  std::vector<Loss> losses = {};  // Without the name of the file.
  std::uint64_t end = 0;          // Of the last whole batch: zeros or nothing may follow.
  std::uint64_t records = 0;
};

// `content` is the whole segment, its header right. Nothing at or after `synced` was ever confirmed: there the rest is
// cut off instead. When `last`, zeros at the end are room written ahead and stay.
SegmentRepair repair_segment(std::string& content, std::uint64_t base, std::uint64_t synced, bool last);

}  // namespace bide::engine::check
