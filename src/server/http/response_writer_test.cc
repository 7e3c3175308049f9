#include "server/http/response_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "server/http/content_coding.h"

namespace bide::server {
namespace {

bool has_line(const std::string& head, const std::string& line) { return head.find("\r\n" + line + "\r\n") != std::string::npos; }

TEST(ResponseHead, SaysWhatEveryAnswerSays) {
  const std::string head = head_text({.status = 201, .content_type = "application/json"}, {.length = 12});
  EXPECT_TRUE(head.starts_with("HTTP/1.1 201 Created\r\nDate: ")) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_TRUE(has_line(head, "Content-Type: application/json"));
  EXPECT_TRUE(has_line(head, "Content-Length: 12"));
  EXPECT_TRUE(has_line(head, "Cache-Control: no-store"));
  EXPECT_TRUE(has_line(head, "X-Content-Type-Options: nosniff"));
  EXPECT_EQ(head.find("Connection"), std::string::npos);
}

TEST(ResponseHead, LeavesARoutesOwnRulesAlone) {
  const std::string head = head_text({.fields = {{"cache-control", "max-age=60"}}}, {.length = 0});
  EXPECT_TRUE(has_line(head, "cache-control: max-age=60"));
  EXPECT_EQ(head.find("no-store"), std::string::npos);
}

TEST(ResponseHead, SaysHowTheConnectionGoesOn) {
  EXPECT_TRUE(has_line(head_text({}, {.keep_alive = false}), "Connection: close"));
  EXPECT_TRUE(has_line(head_text({}, {.is_http_1_0 = true}), "Connection: keep-alive"));
  EXPECT_TRUE(has_line(head_text({}, {.chunked = true}), "Transfer-Encoding: chunked"));
  EXPECT_EQ(head_text({}, {.is_http_1_0 = true, .chunked = true}).find("chunked"), std::string::npos);
}

TEST(ResponseHead, CannotBeSplitByAValue) {
  const std::string head = head_text({.fields = {{"X-Bad", "a\r\nSet-Cookie: b"}, {"X-Good", "c"}}}, {.length = 0});
  EXPECT_EQ(head.find("Set-Cookie"), std::string::npos);
  EXPECT_TRUE(has_line(head, "X-Good: c"));
}

TEST(ResponseHead, MakesChunks) {
  std::string out;
  append_chunk(out, "hello, hello, hello");
  EXPECT_EQ(out, "13\r\nhello, hello, hello\r\n");
  append_chunk(out, "");
  EXPECT_EQ(out.size(), 25u) << "an empty chunk would be the end";
}


// Takes a few bytes at a time, then none until it is asked again.
class NarrowChannel : public Channel {
 public:
  Transfer handshake() override { return {}; }
  Transfer read(char*, std::size_t) override { return {.state = Transfer::State::kWantsRead}; }
  Transfer write(std::string_view bytes, bool more) override {
    if (fails) return {.state = Transfer::State::kFailed};
    if (std::exchange(is_full_, !is_full_)) return {.state = Transfer::State::kWantsWrite};
    const std::size_t taken = std::min(bytes.size(), width);
    text.append(bytes.substr(0, taken));
    said_more = said_more || more;
    return {.bytes = taken};
  }
  bool has_buffered() const override { return false; }
  void end() override {}

  std::string text;
  std::size_t width = 7;
  bool fails = false;
  bool said_more = false;

 private:
  bool is_full_ = false;
};

void write_all(ResponseWriter& out, NarrowChannel& channel) {
  while (out.write(channel).state == Transfer::State::kWantsWrite) continue;
}

std::string sent(Response response, const ResponseForm& form = {}) {
  ResponseWriter out;
  NarrowChannel channel;
  out.begin(std::move(response), form);
  write_all(out, channel);
  EXPECT_EQ(out.written(), channel.text.size());
  return channel.text;
}
std::string body_of(const std::string& text) { return text.substr(text.find("\r\n\r\n") + 4); }
bool has(const std::string& text, std::string_view line) { return text.find(line) != std::string::npos; }

Response text_of(std::size_t bytes) { return {.content_type = "text/plain", .body = std::string(bytes, 'a')}; }

TEST(ResponseWriter, AnAnswerArrivesWholeHoweverLittleIsTakenAtATime) {
  for (const std::size_t size : {0u, 5u, 16u * 1024, 16u * 1024 + 1, 100'000u}) {
    const std::string text = sent(text_of(size));
    EXPECT_TRUE(has(text, "Content-Length: " + std::to_string(size) + "\r\n"));
    EXPECT_TRUE(body_of(text) == std::string(size, 'a')) << size;
  }
}

TEST(ResponseWriter, ALargeBodyIsNotCopiedBehindItsHead) {
  ResponseWriter out;
  NarrowChannel channel;
  channel.width = 1'000'000;
  out.begin(text_of(100'000), {});
  EXPECT_GT(out.bytes(), 100'000u);
  write_all(out, channel);
  EXPECT_TRUE(channel.said_more) << "the head need not be sent alone";
}

TEST(ResponseWriter, TheAnswerToHeadHasTheLengthButNotTheBody) {
  const std::string text = sent(text_of(5'000), {.method = Method::kHead, .takes_gzip = true});
  EXPECT_TRUE(has(text, "Content-Length: 5000\r\n")) << text;
  EXPECT_EQ(body_of(text), "");
}

TEST(ResponseWriter, NoContentHasNeitherBodyNorLength) {
  const std::string text = sent({.status = 204, .body = "ignored"});
  EXPECT_FALSE(has(text, "Content-Length")) << text;
  EXPECT_EQ(body_of(text), "");
}

TEST(ResponseWriter, WhatIsWorthItIsCompressedForThoseWhoTakeIt) {
  const std::string zipped = sent(text_of(5'000), {.takes_gzip = true});
  EXPECT_TRUE(has(zipped, "Content-Encoding: gzip\r\n") && has(zipped, "Vary: Accept-Encoding\r\n")) << zipped;
  std::string unzipped;
  const auto append = [&unzipped](std::string_view piece) {
    unzipped += piece;
    return true;
  };
  EXPECT_EQ(Gunzip().push(body_of(zipped), append), Gunzip::Result::kOk);
  EXPECT_EQ(unzipped, std::string(5'000, 'a'));

  const std::string plain = sent(text_of(5'000));
  EXPECT_TRUE(!has(plain, "Content-Encoding") && has(plain, "Vary: Accept-Encoding\r\n"));
  EXPECT_FALSE(has(sent(text_of(100), {.takes_gzip = true}), "Content-Encoding")) << "too small";
  EXPECT_FALSE(has(sent(text_of(2'000'000), {.takes_gzip = true}), "Content-Encoding")) << "too large";
  Response image = text_of(5'000);
  image.content_type = "image/png";
  EXPECT_FALSE(has(sent(image, {.takes_gzip = true}), "Content-Encoding"));
  Response coded = text_of(5'000);
  coded.fields = {{"Content-Encoding", "br"}};
  EXPECT_FALSE(has(sent(coded, {.takes_gzip = true}), "gzip"));
}

TEST(ResponseWriter, AStreamComesInChunksAndEndsWithTheLast) {
  ResponseWriter out;
  NarrowChannel channel;
  out.begin_stream({.content_type = "text/event-stream"}, {});
  write_all(out, channel);
  EXPECT_TRUE(has(channel.text, "Transfer-Encoding: chunked\r\n")) << channel.text;
  EXPECT_TRUE(out.is_empty());
  out.add("hello", false);
  out.add("", false);
  out.add(" world", true);
  write_all(out, channel);
  EXPECT_EQ(body_of(channel.text), "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
}

TEST(ResponseWriter, WhatIsAddedWhileSomethingIsOnItsWayComesBehindIt) {
  ResponseWriter out;
  NarrowChannel channel;
  out.begin_stream({}, {});
  EXPECT_EQ(out.write(channel).state, Transfer::State::kWantsWrite);
  out.add("late", false);
  write_all(out, channel);
  EXPECT_EQ(body_of(channel.text), "4\r\nlate\r\n");
}

TEST(ResponseWriter, ToOldClientsAStreamIsAllThatComesUntilTheEnd) {
  ResponseWriter out;
  NarrowChannel channel;
  out.begin_stream({}, {.is_http_1_0 = true, .keep_alive = false});
  out.add("hello", false);
  out.add(" world", true);
  write_all(out, channel);
  EXPECT_EQ(body_of(channel.text), "hello world");
}

TEST(ResponseWriter, AStreamBeforeLeavesNothingBehind) {
  ResponseWriter out;
  NarrowChannel channel;
  out.begin_stream({}, {});
  out.release();
  channel.text.clear();
  out.begin({.body = "next"}, {});
  write_all(out, channel);
  EXPECT_EQ(body_of(channel.text), "next");
}

TEST(ResponseWriter, AChannelThatFailsIsToldOf) {
  ResponseWriter out;
  NarrowChannel channel;
  channel.fails = true;
  out.begin(text_of(5), {});
  EXPECT_EQ(out.write(channel).state, Transfer::State::kFailed);
}

}  // namespace
}  // namespace bide::server
