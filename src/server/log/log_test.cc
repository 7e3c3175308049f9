#include "server/log/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace bide::server {
namespace {

using namespace std::chrono_literals;

class LogTest : public testing::TestWithParam<LogFormat> {
 protected:
  Log log_as(LogFormat format, LogLevel level = LogLevel::kInfo) {
    return Log({.format = format,
                .level = level,
                .sink = [this](std::string_view line) { written += line; },
                .now = [] { return Time(Milliseconds(1'767'323'045'678)); }});
  }

  std::string written;
};

TEST_F(LogTest, WritesTextForPeople) {
  log_as(LogFormat::kText)
      .info("listening", {{"address", "127.0.0.1:7070"}, {"tls", false}, {"limit", 10}, {"took", Milliseconds(1500)}});
  EXPECT_EQ(written, "03:04:05.678 info    listening address=127.0.0.1:7070 tls=false limit=10 took=1500ms\n");
}

TEST_F(LogTest, WritesJsonForPrograms) {
  log_as(LogFormat::kJson)
      .warning("slow", {{"queue", "mail"}, {"attempt", 2u}, {"took", Milliseconds(1500)}, {"retry", true}});
  EXPECT_EQ(written,
            "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warning\",\"message\":\"slow\",\"queue\":\"mail\","
            "\"attempt\":2,\"took\":1.5,\"retry\":true}\n");
}

TEST_F(LogTest, QuotesAValueThatWouldNotEndWhereItSeemsTo) {
  log_as(LogFormat::kText).info("m", {{"error", "a b"}, {"note", ""}, {"say", "x=\"y\""}});
  EXPECT_NE(written.find("error=\"a b\" note=\"\" say=\"x=\\\"y\\\"\""), std::string::npos) << written;
}

TEST_F(LogTest, LeavesOutWhatIsBelowItsLevel) {
  const Log log = log_as(LogFormat::kText, LogLevel::kWarning);
  log.debug("no");
  log.info("no");
  EXPECT_EQ(written, "");
  EXPECT_FALSE(log.writes(LogLevel::kInfo));
  log.error("yes");
  EXPECT_NE(written.find("error   yes"), std::string::npos);
}

TEST_F(LogTest, DropsLinesForAReaderWhoHasStoppedReadingAndSaysHowMany) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  const Log log({.format = LogFormat::kText});
  for (int i = 0; i < 2'000; ++i) log.info(std::string(500, 'x'));  // Far more than a pipe holds.
  std::string read(1 << 20, '\0');
  EXPECT_GT(::read(ends[0], read.data(), read.size()), 0);
  log.info("there again");
  const ssize_t size = ::read(ends[0], read.data(), read.size());
  ::dup2(before, STDERR_FILENO);
  for (const int descriptor : {before, ends[0], ends[1]}) ::close(descriptor);
  read.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  EXPECT_NE(read.find("lines of the log were dropped count=1"), std::string::npos) << read.substr(0, 200);
  EXPECT_NE(read.find("there again\n"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Formats, LogTest, testing::Values(LogFormat::kText, LogFormat::kJson),
                         [](const auto& format) { return format.param == LogFormat::kText ? "Text" : "Json"; });

TEST_P(LogTest, IsOneLineWhateverIsInIt) {
  log_as(GetParam()).info("a\nb", {{"error", "c\r\nd\x1b[31m\xff"}, {"kind", std::string(5'000, 'x')}});
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 1);
  EXPECT_EQ(written.back(), '\n');
  EXPECT_EQ(written.find('\x1b'), std::string::npos);
  EXPECT_LT(written.size(), 1'500u);
}

TEST_P(LogTest, NeverWritesASecret) {
  log_as(GetParam())
      .info(
          "cannot reach amqp://ann:hunter2@host/",
          {{"url", "amqp://ann:hunter2@host/"},
           {"token", "hunter2"},
           {"authorization", "Bearer hunter2"},
           {"callback_secret", "hunter2"},
           {"error",
            "they sent bide_hunter2hunter2hunter2hunter2hunter2hunter2hunt and whsec_hunter2/hunter2+hunter2hunter2"}});
  EXPECT_EQ(written.find("hunter2"), std::string::npos) << written;
  EXPECT_NE(written.find("amqp://ann:***@host/"), std::string::npos) << written;
}

TEST_P(LogTest, KeepsWordsThatOnlyBeginLikeASecret) {
  log_as(GetParam()).info("metric", {{"name", "bide_jobs_enqueued"}});
  EXPECT_NE(written.find("bide_jobs_enqueued"), std::string::npos) << written;
}

}  // namespace
}  // namespace bide::server
