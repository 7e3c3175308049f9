#include "cli/table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cli/say.h"
#include "cli/terminal.h"

namespace bide::cli {

namespace {

// Characters, not bytes. Wide ones count as one: our own texts have none.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

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

  std::string text;
  const auto write = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string space(widths[i] - width_of(cells[i]), ' ');
      const bool right = i < align_.size() && align_[i] == Align::kRight;
      line += (i == 0 ? "" : "  ") + (right ? space + cells[i] : cells[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  if (!headings_.empty()) text += styled(Style::kBold, write(headings_)) + "\n";
  for (const auto& cells : rows_) text += write(cells) + "\n";
  return text;
}

}  // namespace bide::cli
