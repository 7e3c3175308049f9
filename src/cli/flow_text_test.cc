#include "cli/flow_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bide::cli {
namespace {

JobId id_of(std::size_t number) {
  return JobId::parse("018f3c1e-7d5a-7000-8000-000000000" + std::to_string(100 + number)).value();
}

class FlowText : public testing::Test {
 protected:
  JobId add(const std::string& kind, JobState state, std::vector<JobId> after = {}) {
    JobInfo& info = jobs_.emplace_back();
    info.job = Job{.id = id_of(jobs_.size()), .kind = kind, .after = std::move(after)};
    info.state = state;
    return info.job.id;
  }
  wire::FlowInfo flow() const { return wire::flow_of(id_of(1), jobs_, true); }
  static std::string row(const std::string& kind, std::size_t number, const std::string& state) {
    return kind + "  " + id_of(number).to_string() + "  " + state + "\n";
  }

  std::vector<JobInfo> jobs_;
};

TEST_F(FlowText, AJobIsShownBelowTheLastOfThoseItWaitsFor) {
  const JobId fetch = add("fetch", JobState::kDone);
  const JobId small = add("small", JobState::kDone, {fetch});
  const JobId large = add("large", JobState::kRunning, {fetch});
  jobs_.back().progress = Progress{0.625, "page 12"};
  add("publish", JobState::kWaiting, {small, large});
  EXPECT_EQ(flow_tree(flow()), row("fetch      ", 1, "done") + row("  small    ", 2, "done") +
                                   "  large      " + large.to_string() + "  running  62.5 %, page 12\n" +
                                   "    publish  " + id_of(4).to_string() + "  waiting  after 2 jobs\n");
  EXPECT_EQ(flow_summary(flow()), "65.6 %: 2 done, 1 running, 1 waiting");
}

TEST_F(FlowText, ManyThatAreAlikeAreOneLine) {
  std::vector<JobId> parts;
  for (int i = 0; i < 9; ++i) parts.push_back(add("part", i < 8 ? JobState::kDone : JobState::kDead));
  jobs_.back().history = {{.text = "no such file"}};
  add("join", JobState::kWaiting, parts);
  const std::string text = flow_tree(flow());
  EXPECT_NE(text.find("... and 6 more part"), std::string::npos) << text;
  EXPECT_NE(text.find("dead     no such file"), std::string::npos) << text;
  EXPECT_EQ(text.find(parts[2].to_string()), std::string::npos) << text;
  EXPECT_NE(text.find("  join"), std::string::npos) << text;
}

TEST_F(FlowText, AGraphHasAnArrowForEachJobThatIsWaitedFor) {
  const JobId fetch = add("fetch", JobState::kDone);
  const JobId gone = id_of(77);
  add("cut", JobState::kReady, {fetch, gone});
  const std::string text = flow_graph(flow());
  EXPECT_TRUE(text.starts_with("flowchart TD\n"
                               "  j1[\"fetch<br/>done\"]:::done\n"
                               "  j2[\"cut<br/>ready\"]:::ready\n"
                               "  j1 --> j2\n"
                               "  classDef"))
      << text;
}

TEST_F(FlowText, AChainIsAsDeepAsItIsLong) {
  JobId last;
  for (int i = 0; i < 800; ++i) last = add("link", JobState::kWaiting, i == 0 ? std::vector<JobId>() : std::vector{last});
  const std::string text = flow_tree(flow());
  EXPECT_NE(text.find(std::string(2 * 799, ' ') + "link"), std::string::npos);
}

}  // namespace
}  // namespace bide::cli
