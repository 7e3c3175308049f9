// The word somebody probably meant: the nearest of those allowed, for messages about unknown names.
//
//   did_you_mean("qeue", {"queue", "kind"})   "; did you mean 'queue'?"
//   did_you_mean("banana", {"queue", "kind"}) ""

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bide::core {

// The word with the fewest letters added, left out, changed or swapped with their neighbour, whatever the case; of
// several the first. When even that differs in more than a third of its letters: the only word that begins as given, or
// nothing.
std::optional<std::string_view> nearest_word(std::string_view given, std::span<const std::string_view> words);

// The end of a message that has said what is unknown; empty when nothing is near.
std::string did_you_mean(std::string_view given, std::span<const std::string_view> words);

}  // namespace bide::core
