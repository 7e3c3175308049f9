#include "cli/say.h"

#include <algorithm>
#include <cstdio>

#include "cli/terminal.h"
#include "core/quote.h"
#include "core/secrets.h"

namespace bide::cli {

std::string for_people(std::string_view text) { return core::printable(core::without_secrets(text)); }

void say(std::string_view line) { std::puts(for_people(line).c_str()); }

void tell(std::string_view line) { std::fprintf(stderr, "bide: %s\n", for_people(line).c_str()); }

void print_result(std::string_view result) {
  if (result.empty()) return;
  if (!stdout_is_terminal()) {
    std::fwrite(result.data(), 1, result.size(), stdout);
    if (result.back() != '\n') std::putchar('\n');
    return;
  }
  while (!result.empty()) {
    const std::size_t end = std::min(result.find('\n'), result.size());
    std::puts(core::printable(result.substr(0, end)).c_str());
    result.remove_prefix(std::min(end + 1, result.size()));
  }
}

void Warnings::add(const std::string& text) {
  texts_.push_back(text);
  if (!json_) tell("warning: " + text);
}

JsonArray Warnings::to_json() const {
  JsonArray json;
  for (const std::string& text : texts_) json.add(text);
  return json;
}

}  // namespace bide::cli
