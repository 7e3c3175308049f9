#include "core/quote.h"

#include <cstdint>
#include <cstdio>

#include "core/text.h"
#include "core/utf8.h"

namespace bide::core {
namespace {

struct Character {
  std::size_t size = 1;
  std::uint32_t code = 0;
  bool valid = false;
};

// The UTF-8 character at the start of `text`, which is not empty; a single invalid byte when there is none.
Character first_character(std::string_view text) {
  const std::size_t size = character_bytes(text);
  if (size == 0) return {1, static_cast<std::uint8_t>(text[0]), false};
  return {size, code_point(text.substr(0, size)), true};
}

bool is_harmful(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) ||  // Control characters.
         code == 0x061C || code == 0xFEFF ||              // Invisible.
         (code >= 0x200B && code <= 0x200F) ||            // Invisible, or turning the direction.
         (code >= 0x2028 && code <= 0x202E) ||            // Ends of lines and paragraphs, direction.
         (code >= 0x2060 && code <= 0x206F);              // Invisible, direction.
}

enum class Quotes { kEscape, kKeep };

void append_escaped(std::string& out, std::string_view bytes, const Character& character, Quotes quotes) {
  const bool is_quote = character.code == '\'' || character.code == '\\';
  if (is_quote && quotes == Quotes::kKeep) {
    out += bytes;
    return;
  }
  if (const char letter = character.code == '\'' ? '\'' : escape_letter(character.code)) {
    out += '\\';
    out += letter;
    return;
  }
  const bool one_byte = character.size == 1;
  if (character.valid && !is_harmful(character.code)) {
    out += bytes;
    return;
  }
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, one_byte ? "\\x%02x" : "\\u{%x}", static_cast<unsigned>(character.code));
  out += buffer;
}

}  // namespace

std::string Quote::operator()(std::string_view text) const {
  std::string out = "'";
  std::size_t at = 0;
  for (std::size_t shown = 0; shown < kQuotedCharacters && at < text.size(); ++shown) {
    const Character character = first_character(text.substr(at));
    append_escaped(out, text.substr(at, character.size), character, Quotes::kEscape);
    at += character.size;
  }
  out += '\'';
  if (at < text.size()) out += "... (" + std::to_string(text.size()) + " bytes)";
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    append_escaped(out, text.substr(at, character.size), character, Quotes::kKeep);
    at += character.size;
  }
  return out;
}

}  // namespace bide::core
