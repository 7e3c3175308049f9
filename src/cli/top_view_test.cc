#include "cli/top_view.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace bide::cli {
namespace {

using namespace std::chrono_literals;

std::size_t columns_of(std::string_view line) {
  std::size_t columns = 0;
  for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return columns;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TopLook look(std::uint64_t accepted, std::uint64_t done, std::uint64_t dead) {
  TopLook look{.at = Time(1'000'000s), .seconds = 2};
  look.queues = {{.name = "mail", .ready = 5, .dead = dead, .oldest_ready = Time(999'990s), .workers = 1},
                 {.name = "images", .ready = 50, .running = 2, .workers = 3}};
  look.audit.accepted = accepted;
  look.audit.done = done;
  look.audit.details["dead"] = dead;
  for (const char* kind : {"resize", "resize", "send"}) {
    JobInfo info;
    info.job.kind = kind;
    info.worker = "host-1";
    look.running.push_back(info);
  }
  return look;
}

TEST(TopView, RatesAreBetweenTwoLooks) {
  TopView view;
  view.add(look(100, 50, 3));
  view.add(look(140, 60, 7));
  const std::string text = view.text(0, 0, false);
  EXPECT_NE(text.find("in          20.0/s"), std::string::npos) << text;
  EXPECT_NE(text.find("done         5.0/s"), std::string::npos) << text;
  EXPECT_NE(text.find("dead         2.0/s"), std::string::npos) << text;
  EXPECT_NE(text.find("running: resize 2, send 1"), std::string::npos) << text;
  EXPECT_NE(text.find("workers: host-1 3"), std::string::npos) << text;
  EXPECT_NE(text.find("10s"), std::string::npos) << text;  // How late the oldest is.
}

TEST(TopView, TheOrderOfQueuesCanBeChosen) {
  TopView view;
  view.add(look(0, 0, 3));
  const auto first = [&] {
    const std::string text = view.text(0, 0, false);
    return text.find("mail") < text.find("images") ? "mail" : "images";
  };
  EXPECT_STREQ(first(), "images");
  view.set_order(TopView::Order::kDead);
  EXPECT_STREQ(first(), "mail");
  view.next_order();  // Late.
  EXPECT_STREQ(first(), "mail");
  view.set_order(TopView::Order::kReady);
  EXPECT_STREQ(first(), "images");
}

TEST(TopView, FitsAnyWindow) {
  TopView view;
  for (std::uint64_t i = 0; i < 300; ++i) view.add(look(i * i, i, i));
  for (const std::size_t width : std::initializer_list<std::size_t>{1, 10, 24, 40, 80, 200}) {
    for (const std::size_t height : std::initializer_list<std::size_t>{5, 12, 50}) {
      const auto lines = lines_of(view.text(width, height, true));
      EXPECT_LE(lines.size(), std::max<std::size_t>(height, 5)) << width << " x " << height;
      for (const std::string& line : lines) EXPECT_LE(columns_of(line), width) << line;
    }
  }
}

TEST(Sparkline, ShowsTheNewestValuesByTheirHeight) {
  EXPECT_EQ(sparkline({0, 1, 2, 4}, 10), "▁▃▅█");
  EXPECT_EQ(sparkline({9, 9, 1, 2}, 2), "▅█");
  EXPECT_EQ(sparkline({0, 0}, 5), "▁▁");
  EXPECT_EQ(sparkline({}, 5), "");
}

}  // namespace
}  // namespace bide::cli
