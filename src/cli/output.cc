#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "cli/failure.h"
#include "core/quote.h"
#include "core/url_escape.h"

namespace bide::cli {

namespace {

// In the order of Style.
constexpr std::array<std::string_view, 6> kCodes = {"", "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m"};
constexpr std::size_t kBarWidth = 24;

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

// A terminal that would show escape sequences instead of obeying them.
bool is_dumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::string_view(term) == "dumb";
}

bool wants_colour() {
  static const bool wants = [] {
    const char* no_color = std::getenv("NO_COLOR");
    return stdout_is_terminal() && !is_dumb() && (no_color == nullptr || *no_color == '\0');
  }();
  return wants;
}

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
  return size.ws_col > 20 ? size.ws_col : 80;
}

// Characters, not bytes. Wide ones count as one: our own texts have none.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string for_people(std::string_view text) { return core::printable(core::without_secrets(text)); }

void say(std::string_view line) { std::puts(for_people(line).c_str()); }

void tell(std::string_view line) { std::fprintf(stderr, "bide: %s\n", for_people(line).c_str()); }

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print(const JsonObject& json) { std::puts(json.text().c_str()); }

void print(const Invocation& call, const JsonObject& json, std::string_view text) {
  if (call.json()) return print(json);
  print(text);
}

void print_result(std::string_view result) {
  if (result.empty()) return;
  if (!stdout_is_terminal()) {
    print(result);
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

void confirm(const Invocation& call, const std::string& what) {
  if (call.has(kYesFlag.name)) return;
  if (::isatty(STDIN_FILENO) != 1 || !stderr_is_terminal()) fail_usage("this would " + what + "; add --yes to do it");
  std::fprintf(stderr, "This will %s. Go on? [y/N] ", for_people(what).c_str());
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "Y" && answer != "yes") throw Failure{kUsage, "nothing was done"};
}

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

std::string styled(Style style, std::string_view text) {
  if (style == Style::kPlain || !wants_colour()) return std::string(text);
  return std::string(kCodes[static_cast<std::size_t>(style)]) + std::string(text) + "\x1b[0m";
}

void StatusLine::show(std::string_view text) {
  if (!stderr_is_terminal() || is_dumb()) return;
  std::fprintf(stderr, "\r\x1b[K%s", std::string(text.substr(0, terminal_columns() - 1)).c_str());
  std::fflush(stderr);
  shown_ = true;
}

void StatusLine::show_progress(std::uint64_t done, std::uint64_t all, std::string_view text) {
  const double fraction = all == 0 ? 0 : static_cast<double>(done) / static_cast<double>(all);
  const auto full = static_cast<std::size_t>(std::min(1.0, fraction) * kBarWidth);
  show("[" + std::string(full, '#') + std::string(kBarWidth - full, '.') + "] " + std::string(text));
}

void StatusLine::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

Table::Table(std::vector<std::string> headings, std::vector<Align> align)
    : headings_(std::move(headings)), align_(std::move(align)) {}

void Table::row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = for_people(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  const auto measure = [&](const std::vector<std::string>& cells) {
    widths.resize(std::max(widths.size(), cells.size()), 0);
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width_of(cells[i]));
  };
  measure(headings_);
  for (const auto& cells : rows_) measure(cells);

  const auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string space(widths[i] - width_of(cells[i]), ' ');
      const bool right = i < align_.size() && align_[i] == Align::kRight;
      line += (i == 0 ? "" : "  ") + (right ? space + cells[i] : cells[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  std::string text;
  if (!headings_.empty()) text += styled(Style::kBold, line_of(headings_)) + "\n";
  for (const auto& cells : rows_) text += line_of(cells) + "\n";
  return text;
}

}  // namespace bide::cli
