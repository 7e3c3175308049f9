#include "cli/table.h"

#include <gtest/gtest.h>

namespace bide::cli {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"name", "count"}, {Table::Align::kLeft, Table::Align::kRight});
  table.row({"a", "1"});
  table.row({"longer", "1000000"});
  EXPECT_EQ(table.text(),
            "name      count\n"
            "a             1\n"
            "longer  1000000\n");
}

TEST(Table, CharactersAreCountedNotBytes) {
  Table table;
  table.row({"\xc3\xa9\xc3\xa9", "x"});
  table.row({"abc", "y"});
  EXPECT_EQ(table.text(), "\xc3\xa9\xc3\xa9   x\nabc  y\n");
}

TEST(Table, ControlCharactersCannotSpoilTheTerminal) {
  Table table;
  table.row({"a\x1b[31mb\nc"});
  EXPECT_EQ(table.text(), "a\\x1b[31mb\\nc\n");
}

}  // namespace
}  // namespace bide::cli
