// Terminal: whether somebody is looking, and colour for those who are.

#pragma once

#include <string>
#include <string_view>

namespace bide::cli {

enum class Style { kPlain, kBold, kGreen, kYellow, kRed, kDim };

bool stdout_is_terminal();
bool stderr_is_terminal();
bool stdin_is_terminal();

// The text in that style when stdout is a terminal and NO_COLOR is not set; as it is otherwise.
std::string styled(Style style, std::string_view text);

// One line on stderr that is written over and over, for progress; nothing at all when nobody is looking.
class StatusLine {
 public:
  StatusLine() = default;
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(std::string_view text);
  void clear();

 private:
  bool shown_ = false;
};

// "[#######.............]"
std::string progress_bar(double fraction, int width = 24);

int terminal_columns();
int terminal_rows();

}  // namespace bide::cli
