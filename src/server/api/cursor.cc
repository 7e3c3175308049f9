#include "server/api/cursor.h"

#include "server/api/digest.h"
#include "core/base64.h"
#include "wire/filter_query.h"

namespace bide::server {

namespace {

constexpr std::size_t kCheckBytes = 8;

// Pages with and without bodies are of the same list.
std::string check_of(std::string_view cursor, JobFilter filter) {
  filter.bodies = false;
  return hex(sha256("bide cursor\n" + wire::list_query({.filter = filter, .cursor = {}, .limit = 0}) + "\n" +
                    std::string(cursor)),
             kCheckBytes);
}

}  // namespace

std::string sealed_cursor(std::string_view cursor, const JobFilter& filter) {
  if (cursor.empty()) return {};
  std::string text = core::to_base64(cursor);
  // Nothing in it needs to be escaped in a URL.
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (text.ends_with('=')) text.pop_back();
  return text + "." + check_of(cursor, filter);
}

std::optional<std::string> opened_cursor(std::string_view sealed, const JobFilter& filter) {
  const std::size_t dot = sealed.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::string text(sealed.substr(0, dot));
  for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
  while (text.size() % 4 != 0) text += '=';
  const auto cursor = core::from_base64(text);
  if (!cursor || sealed.substr(dot + 1) != check_of(*cursor, filter)) return std::nullopt;
  return cursor;
}

}  // namespace bide::server
