#include "bide/job_id.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>

namespace bide {
namespace {

TEST(JobIdText, IsTheUsualThirtySixCharactersInLowerCase) {
  const JobId id({0x01, 0x93, 0xe2, 0xa4, 0x5b, 0x6c, 0x7d, 0x8e, 0x9f, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd});
  EXPECT_EQ(id.to_string(), "0193e2a4-5b6c-7d8e-9f01-23456789abcd");
  EXPECT_EQ(JobId::parse("0193e2a4-5b6c-7d8e-9f01-23456789abcd").value(), id);
  EXPECT_EQ(JobId::parse("0193E2A4-5B6C-7D8E-9F01-23456789ABCD").value(), id);
}

TEST(JobIdText, NilIsAllZeros) {
  EXPECT_TRUE(JobId().is_nil());
  EXPECT_EQ(JobId().to_string(), "00000000-0000-0000-0000-000000000000");
  EXPECT_TRUE(JobId::parse(JobId().to_string()).value().is_nil());
}

TEST(JobIdText, ParsingRefusesEverythingElseAndSaysWhere) {
  const auto message = [](std::string_view text) {
    const Result<JobId> id = JobId::parse(text);
    EXPECT_FALSE(id) << text;
    if (id) return std::string();
    EXPECT_EQ(id.error().code, ErrorCode::kInvalidArgument);
    return id.error().message;
  };
  EXPECT_EQ(message("42"),
            "invalid job id '42': it has 2 characters, not 36; give a UUID such as "
            "0193e2a4-5b6c-7d8e-9f01-23456789abcd");
  EXPECT_NE(message("").find("0 characters"), std::string::npos);
  EXPECT_NE(message("{0193e2a4-5b6c-7d8e-9f01-23456789abcd}").find("38 characters"), std::string::npos);
  EXPECT_NE(message("0193e2a4x5b6c-7d8e-9f01-23456789abcd").find("character 9 must be a dash"), std::string::npos);
  EXPECT_NE(message("0193e2a4-5b6c-7d8e-9f01-23456789abcg").find("character 36 must be a hex"), std::string::npos);
}

RC_GTEST_PROP(JobIdProperty, EveryIdParsesBackAndTextSortsAsIdsDo,
              (const std::array<std::uint8_t, 16>& a, const std::array<std::uint8_t, 16>& b)) {
  const JobId first(a);
  const JobId second(b);
  RC_ASSERT(JobId::parse(first.to_string()).value() == first);
  RC_ASSERT((first < second) == (first.to_string() < second.to_string()));
}

}  // namespace
}  // namespace bide
