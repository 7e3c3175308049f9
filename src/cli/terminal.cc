#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace bide::cli {

namespace {

// Of kBold, kGreen, kYellow, kRed, kDim.
constexpr std::array<std::string_view, 6> kCodes = {"", "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m"};

// A terminal that would show our sequences instead of obeying them.
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

winsize window() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
  return size;
}

}  // namespace

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }
bool stdin_is_terminal() { return ::isatty(STDIN_FILENO) == 1; }

std::string styled(Style style, std::string_view text) {
  if (style == Style::kPlain || !wants_colour()) return std::string(text);
  return std::string(kCodes[static_cast<std::size_t>(style)]) + std::string(text) + "\x1b[0m";
}

void StatusLine::show(std::string_view text) {
  if (!stderr_is_terminal() || is_dumb()) return;
  const std::string line(text.substr(0, static_cast<std::size_t>(terminal_columns() - 1)));
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void StatusLine::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

std::string progress_bar(double fraction, int width) {
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '.') + "]";
}

int terminal_columns() {
  const int columns = window().ws_col;
  return columns > 20 ? columns : 80;
}

int terminal_rows() {
  const int rows = window().ws_row;
  return rows > 5 ? rows : 24;
}

}  // namespace bide::cli
