// Log: what the server has to say, a line at a time, on stderr: text for people on a terminal, JSON for programs
// otherwise. Safe to use from any thread. Nobody waits for a reader who has stopped reading: lines are dropped then, and
// counted in the next one that gets through.
//
//   log.info("listening", {{"address", "127.0.0.1:7070"}, {"tls", false}});
//
//   23:42:06.123 info  listening address=127.0.0.1:7070 tls=false
//   {"time":"2026-01-02T23:42:06.123Z","level":"info","message":"listening","address":"127.0.0.1:7070","tls":false}
//
// Passwords in URLs, bearer tokens, and every field whose name says that it is a secret are written as ***.

#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bide/job.h"

namespace bide::server {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };
enum class LogFormat : std::uint8_t { kAuto, kText, kJson };  // kAuto: text on a terminal.

std::string_view to_string(LogLevel level);

// A name and a value. The vocabulary: job, queue, kind, attempt, worker, url, path, peer, status, error.
struct LogField {
  LogField(std::string_view field_name, std::string_view text) : name(field_name), value(text) {}
  LogField(std::string_view field_name, const std::string& text) : name(field_name), value(text) {}
  LogField(std::string_view field_name, const char* text) : name(field_name), value(text) {}
  LogField(std::string_view field_name, bool flag) : name(field_name), value(flag ? "true" : "false"), plain(true) {}
  template <std::integral T>
  LogField(std::string_view field_name, T number) : name(field_name), value(std::to_string(number)), plain(true) {}
  LogField(std::string_view field_name, Milliseconds duration);  // In JSON: seconds, as a number.

  std::string_view name;
  std::string value;
  std::string json = {};  // Not empty: what JSON has in place of the value.
  bool plain = false;     // A number or a truth value: JSON has it without quotes.
};

using LogFields = std::initializer_list<LogField>;

struct LogOptions {
  LogFormat format = LogFormat::kAuto;
  LogLevel level = LogLevel::kInfo;  // What is below is not written.
  // Gets each line with its end, in place of stderr. For tests.
  std::function<void(std::string_view)> sink = {};
  std::function<Time()> now = {};
};

class Log {
 public:
  explicit Log(LogOptions options = {});

  bool writes(LogLevel level) const { return level >= options_.level; }
  void write(LogLevel level, std::string_view message, LogFields fields = {}) const;

  void debug(std::string_view message, LogFields fields = {}) const { write(LogLevel::kDebug, message, fields); }
  void info(std::string_view message, LogFields fields = {}) const { write(LogLevel::kInfo, message, fields); }
  void warning(std::string_view message, LogFields fields = {}) const { write(LogLevel::kWarning, message, fields); }
  void error(std::string_view message, LogFields fields = {}) const { write(LogLevel::kError, message, fields); }

 private:
  const LogOptions options_;
  const bool json_;
};

}  // namespace bide::server
