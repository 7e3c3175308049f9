#include "cli/output.h"

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

TEST(Json, ObjectsKeepTheOrderOfTheirFields) {
  JsonObject object;
  object.add("b", 1).add("a", "x").add("list", JsonArray().add("one").add(JsonObject().add("deep", true)));
  object.add("inner", JsonObject()).add("nothing", nullptr).add("no time", std::optional<Time>());
  EXPECT_EQ(object.text(), R"({"b":1,"a":"x","list":["one",{"deep":true}],"inner":{},"nothing":null,"no time":null})");
}

TEST(Json, BytesThatAreNotTextAreGivenAsBase64) {
  EXPECT_EQ(JsonObject().add_bytes("a", "\xff").add_bytes("b", "text").text(), R"({"a_base64":"/w==","b":"text"})");
}

}  // namespace
}  // namespace bide::cli
