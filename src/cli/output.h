// What commands write. Text of others (errors, names, URLs, output of handlers) reaches a terminal through for_people()
// only: control characters and bytes that are not UTF-8 are escaped, passwords in URLs are left out.
//
//   say("queue " + name + " is paused");                 a line on stdout
//   tell("warning: --due is in the past");               a line on stderr, after "bide: "
//   print(call, report_json(report), report_text(report));   JSON or text on stdout, by --json

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/invocation.h"
#include "cli/json.h"

namespace bide::cli {

// One line, whatever the text was.
std::string for_people(std::string_view text);

void say(std::string_view line);
void tell(std::string_view line);
void print(std::string_view text);  // As it is.
void print(const JsonObject& json);
void print(const Invocation& call, const JsonObject& json, std::string_view text);
// The result of a job, as it is; on a terminal line by line, escaped.
void print_result(std::string_view result);

// What is odd but no error: at once on stderr, or with --json as part of the answer, so that stderr has errors only.
class Warnings {
 public:
  explicit Warnings(bool json) : json_(json) {}

  void add(const std::string& text);
  JsonArray to_json() const { return JsonArray(texts_); }

 private:
  const bool json_;
  std::vector<std::string> texts_;
};

// Asks on a terminal; elsewhere --yes is needed. Throws Failure when the answer is no.
void confirm(const Invocation& call, const std::string& what);

bool stdout_is_terminal();

enum class Style { kPlain, kBold, kGreen, kYellow, kRed, kDim };

// The text in that style when stdout is a terminal and NO_COLOR is not set; as it is otherwise.
std::string styled(Style style, std::string_view text);

// One line on stderr that is overwritten, for progress; nothing when stderr is no terminal.
class StatusLine {
 public:
  StatusLine() = default;
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(std::string_view text);
  void show_progress(std::uint64_t done, std::uint64_t all, std::string_view text);  // "[#######.............] text"
  void clear();

 private:
  bool shown_ = false;
};

// Rows in columns as wide as they must be.
class Table {
 public:
  enum class Align { kLeft, kRight };

  explicit Table(std::vector<std::string> headings = {}, std::vector<Align> align = {});

  void row(std::vector<std::string> cells);
  // Lines without space at their ends. Cells are escaped as by for_people().
  std::string text() const;

 private:
  const std::vector<std::string> headings_;
  const std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace bide::cli
