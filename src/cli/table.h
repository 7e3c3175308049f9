// Table: rows in columns as wide as they must be, for people.

#pragma once

#include <string>
#include <vector>

namespace bide::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };

  Table() = default;
  explicit Table(std::vector<std::string> headings, std::vector<Align> align = {});

  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Lines without space at their ends. Cells are escaped as by for_people().
  std::string text() const;

 private:
  std::vector<std::string> headings_;
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace bide::cli
