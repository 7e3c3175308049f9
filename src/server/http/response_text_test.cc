#include "server/http/response_text.h"

#include <gtest/gtest.h>

namespace bide::server {
namespace {

bool has_line(const std::string& head, const std::string& line) { return head.find("\r\n" + line + "\r\n") != std::string::npos; }

TEST(ResponseText, SaysWhatEveryAnswerSays) {
  const std::string head = head_text({.status = 201, .content_type = "application/json"}, {.length = 12});
  EXPECT_TRUE(head.starts_with("HTTP/1.1 201 Created\r\nDate: ")) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_TRUE(has_line(head, "Content-Type: application/json"));
  EXPECT_TRUE(has_line(head, "Content-Length: 12"));
  EXPECT_TRUE(has_line(head, "Cache-Control: no-store"));
  EXPECT_TRUE(has_line(head, "X-Content-Type-Options: nosniff"));
  EXPECT_EQ(head.find("Connection"), std::string::npos);
}

TEST(ResponseText, LeavesARoutesOwnRulesAlone) {
  const std::string head = head_text({.fields = {{"cache-control", "max-age=60"}}}, {.length = 0});
  EXPECT_TRUE(has_line(head, "cache-control: max-age=60"));
  EXPECT_EQ(head.find("no-store"), std::string::npos);
}

TEST(ResponseText, SaysHowTheConnectionGoesOn) {
  EXPECT_TRUE(has_line(head_text({}, {.keep_alive = false}), "Connection: close"));
  EXPECT_TRUE(has_line(head_text({}, {.is_http_1_0 = true}), "Connection: keep-alive"));
  EXPECT_TRUE(has_line(head_text({}, {.chunked = true}), "Transfer-Encoding: chunked"));
  EXPECT_EQ(head_text({}, {.is_http_1_0 = true, .chunked = true}).find("chunked"), std::string::npos);
}

TEST(ResponseText, CannotBeSplitByAValue) {
  const std::string head = head_text({.fields = {{"X-Bad", "a\r\nSet-Cookie: b"}, {"X-Good", "c"}}}, {.length = 0});
  EXPECT_EQ(head.find("Set-Cookie"), std::string::npos);
  EXPECT_TRUE(has_line(head, "X-Good: c"));
}

TEST(ResponseText, MakesChunks) {
  std::string out;
  append_chunk(out, "hello, hello, hello");
  EXPECT_EQ(out, "13\r\nhello, hello, hello\r\n");
  append_chunk(out, "");
  EXPECT_EQ(out.size(), 25u) << "an empty chunk would be the end";
}

}  // namespace
}  // namespace bide::server
