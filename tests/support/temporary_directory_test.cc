#include "support/temporary_directory.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace bide::support {
namespace {

TEST(TemporaryDirectory, IsThereAndDiffersFromAnyOther) {
  const TemporaryDirectory one;
  const TemporaryDirectory other;
  EXPECT_TRUE(std::filesystem::is_directory(one.path()));
  EXPECT_NE(one.path(), other.path());
}

TEST(TemporaryDirectory, IsGoneWithItsContentAtTheEnd) {
  std::string path;
  {
    const TemporaryDirectory folder;
    path = folder.path();
    std::filesystem::create_directory(path + "/below");
    std::ofstream(path + "/below/file") << "x";
    ASSERT_TRUE(std::filesystem::exists(path + "/below/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace bide::support
