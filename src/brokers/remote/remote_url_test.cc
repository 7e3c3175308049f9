#include "brokers/remote/remote_url.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace bide::brokers::remote {
namespace {

Result<RemoteSettings> http(std::string_view rest, std::string_view token = {}) {
  return parse_remote_url("http", rest, token);
}

TEST(RemoteUrl, NamesTheServer) {
  EXPECT_EQ(http("//127.0.0.1:7070")->base, "http://127.0.0.1:7070");
  EXPECT_EQ(http("//[::1]:7070/")->base, "http://[::1]:7070");
  EXPECT_EQ(parse_remote_url("https", "//jobs.example.org/bide/", "")->base, "https://jobs.example.org/bide");
}

TEST(RemoteUrl, NamesASocketOfTheMachine) {
  const auto settings = parse_remote_url("http+unix", "/run/my%20bide.sock?patience=1s", "");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->unix_socket, "/run/my bide.sock");
  EXPECT_EQ(settings->place(), "/run/my bide.sock");
  EXPECT_EQ(settings->patience, Milliseconds(1000));
  EXPECT_FALSE(parse_remote_url("http+unix", "relative", ""));
}

TEST(RemoteUrl, SaysWhatIsWrong) {
  for (const char* rest : {"", "127.0.0.1", "//", "//:7070", "//host:0", "//host:99999", "//host:x", "//[::1", "//a b",
                           "//host?colour=red", "//host?patience=soon", "//host?ca=/x", "//host?token_file=%zz"}) {
    const auto settings = http(rest);
    ASSERT_FALSE(settings) << rest;
    EXPECT_EQ(settings.error().code, ErrorCode::kInvalidArgument) << rest;
  }
  EXPECT_NE(http("//host?pateince=1s").error().message.find("patience"), std::string::npos);
}

TEST(RemoteUrl, RefusesSecretsInTheUrlAndDoesNotRepeatThem) {
  for (const char* rest : {"//me:hunter2@host:7070", "//host?token=hunter2"}) {
    const auto settings = http(rest);
    ASSERT_FALSE(settings) << rest;
    EXPECT_EQ(settings.error().message.find("hunter2"), std::string::npos);
  }
  EXPECT_EQ(http("//host", "two words").error().message.find("two words"), std::string::npos);
}

TEST(RemoteUrl, TakesTheTokenFromAFileOrFromTheEnvironment) {
  const support::TemporaryDirectory directory;
  const std::string path = directory.path() + "/token";
  std::ofstream(path) << "bide_from_file\n";
  std::ofstream(directory.path() + "/empty") << "\n";
  EXPECT_EQ(http("//host")->token, "");
  EXPECT_EQ(http("//host", "bide_from_environment")->token, "bide_from_environment");
  EXPECT_EQ(http("//host?token_file=" + path, "bide_from_environment")->token, "bide_from_file");
  EXPECT_EQ(http("//host?token_file=" + directory.path() + "/none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(http("//host?token_file=" + directory.path() + "/empty").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace bide::brokers::remote
