#include "server/log/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "core/duration.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/time_text.h"
#include "core/url_escape.h"
#include "platform/local_socket.h"
#include "wire/json_writer.h"

namespace bide::server {
namespace {

constexpr std::string_view kHidden = "***";
// A line is written by one call and stays whole also where several processes share a pipe.
constexpr std::size_t kMostValueBytes = 1'024;

Time system_now() { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

bool is_secret_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kWords = {"token",         "secret", "password",
                                                      "authorization", "cookie", "signature"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

bool is_token_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// Tokens of ours (bide_...) and of webhooks (whsec_...), wherever they are found: somebody's error text may quote one.
std::string without_tokens(std::string text) {
  constexpr std::size_t kShortest = 24;
  for (const std::string_view prefix : {std::string_view("bide_"), std::string_view("whsec_")}) {
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + prefix.size())) {
      const std::size_t from = at + prefix.size();
      const auto is_letter = [&](char c) { return is_token_letter(c) || c == '+' || c == '/'; };
      const auto end = std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), is_letter);
      const auto size = static_cast<std::size_t>(end - text.begin()) - from;
      if (size >= kShortest) text.replace(from, size, kHidden);
    }
  }
  return text;
}

std::string shown(std::string_view text) {
  std::string cut(text.substr(0, kMostValueBytes));
  if (cut.size() < text.size()) cut += "...";
  return without_tokens(core::without_secrets(cut));
}

std::string shown_value(const LogField& field) {
  if (field.plain) return field.value;
  return is_secret_name(field.name) ? std::string(kHidden) : shown(field.value);
}

// In quotes when a reader, or a program that splits at spaces, would not see where it ends.
std::string text_value(const LogField& field) {
  const std::string value = core::printable(shown_value(field));
  if (!value.empty() && value.find_first_of(" =\"") == std::string::npos) return value;
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string text_line(Time now, LogLevel level, std::string_view message, LogFields fields) {
  const std::string time = core::format_time(now);
  std::string line = time.substr(time.find('T') + 1);
  line.back() = ' ';  // In place of the Z.
  std::string name(to_string(level));
  name.resize(8, ' ');
  line += name + core::printable(shown(message));
  for (const LogField& field : fields) line.append(" ").append(field.name).append("=").append(text_value(field));
  return line + "\n";
}

std::string json_line(Time now, LogLevel level, std::string_view message, LogFields fields) {
  std::string line;
  wire::JsonWriter json(line);
  json.begin_object().field("time", now).field("level", to_string(level)).field("message", shown(message));
  for (const LogField& field : fields) {
    json.name(field.name);
    if (!field.json.empty())
      json.raw(field.json);
    else if (field.plain)
      json.raw(field.value);
    else
      json.string(shown_value(field));
  }
  json.end_object();
  return line + "\n";
}

std::atomic<std::uint64_t> dropped = 0;

bool can_write_to_stderr() {
  std::array<platform::Readiness, 1> wanted = {{{.descriptor = STDERR_FILENO, .write = true}}};
  platform::wait_ready(wanted, Milliseconds(0));
  return wanted[0].write;
}

void write_whole(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool write_to_stderr(std::string_view line) {
  if (!can_write_to_stderr()) return false;
  write_whole(line);
  return true;
}

bool wants_json(const LogOptions& options) {
  if (options.format != LogFormat::kAuto) return options.format == LogFormat::kJson;
  return ::isatty(STDERR_FILENO) == 0;
}

}  // namespace

std::string_view to_string(LogLevel level) {
  constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};
  return kNames[static_cast<std::size_t>(level)];
}

LogField::LogField(std::string_view field_name, Milliseconds duration)
    : name(field_name),
      value(core::format_duration(duration)),
      json(core::format_number(static_cast<double>(duration.count()) / 1000)) {}

Log::Log(LogOptions options) : options_(std::move(options)), json_(wants_json(options_)) {}

void Log::write(LogLevel level, std::string_view message, LogFields fields) const {
  if (!writes(level)) return;
  const Time now = options_.now ? options_.now() : system_now();
  const auto line = [&](LogLevel as, std::string_view text, LogFields with) {
    return json_ ? json_line(now, as, text, with) : text_line(now, as, text, with);
  };
  if (options_.sink) return options_.sink(line(level, message, fields));
  if (const std::uint64_t missing = dropped.exchange(0); missing > 0) {
    const bool told = write_to_stderr(line(LogLevel::kWarning, "lines of the log were dropped", {{"count", missing}}));
    if (!told) dropped += missing;
  }
  if (!write_to_stderr(line(level, message, fields))) ++dropped;
}

}  // namespace bide::server
