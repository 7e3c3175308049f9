#include "platform/zone_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/temporary_directory.h"

namespace bide::platform {
namespace {

// The tests of this program run one after another.
class ZoneFiles : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("TZDIR", folder_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("TZDIR"); }
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  support::TemporaryDirectory folder_;
};

TEST_F(ZoneFiles, AreFoundByTheNameOfTheirZone) {
  write("Europe/Berlin", "bytes");
  write("Etc/GMT+1", "more");
  write("posix/Europe/Berlin", "a copy");
  write("tzdata.zi", "no zone");
  write("leapseconds", "no zone");
  EXPECT_EQ(read_zone_file("Europe/Berlin").value_or(""), "bytes");
  EXPECT_EQ(zone_file_names(), (std::vector<std::string>{"Etc/GMT+1", "Europe/Berlin"}));
}

TEST_F(ZoneFiles, NothingElseIsRead) {
  write("Europe/Berlin", "bytes");
  for (const char* name : {"", "Europe", "Europe/Bonn", "Europe/Berlin/x", "../Europe/Berlin",
                           "Europe/../Europe/Berlin", "/etc/passwd", "a\nb"}) {
    const auto found = read_zone_file(name);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code, ErrorCode::kNotFound) << name;
  }
}

TEST_F(ZoneFiles, AFileThatWasReplacedHasAnotherVersion) {
  EXPECT_EQ(zone_file_version("Europe/Berlin"), "");
  write("Europe/Berlin", "bytes");
  const std::string version = zone_file_version("Europe/Berlin");
  EXPECT_NE(version, "");
  EXPECT_EQ(zone_file_version("Europe/Berlin"), version);
  write("new", "bytes");
  std::filesystem::rename(folder_.path() + "/new", folder_.path() + "/Europe/Berlin");
  EXPECT_NE(zone_file_version("Europe/Berlin"), version);
}

}  // namespace
}  // namespace bide::platform
