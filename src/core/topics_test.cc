#include "core/topics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "bide/events.h"

namespace bide::core {
namespace {

TEST(Topics, APatternMatchesWordByWord) {
  struct Case {
    const char* pattern;
    const char* topic;
    bool matches;
  };
  for (const Case& each : {
           Case{"order.created", "order.created", true}, Case{"order.created", "order.created.eu", false},
           Case{"order.*", "order.created", true},       Case{"order.*", "order", false},
           Case{"order.*", "order.created.eu", false},   Case{"order.#", "order", true},
           Case{"order.#", "order.created.eu", true},    Case{"order.#", "orders.created", false},
           Case{"#", "anything.at.all", true},           Case{"*", "one", true},
           Case{"*", "one.two", false},                  Case{"#.eu", "eu", true},
           Case{"#.eu", "order.created.eu", true},       Case{"*.*.eu", "order.created.eu", true},
           Case{"#.b.#", "a.b.c", true},                 Case{"#.b.#", "a.c", false},
           Case{"a.#.*", "a", false},                    Case{"a.#.*", "a.b", true},
           Case{"#.#", "a", true},                       Case{"a.*.#.d", "a.d", false},
       }) {
    EXPECT_EQ(topic_matches(each.pattern, each.topic), each.matches) << each.pattern << " " << each.topic;
  }
}

using Words = std::vector<std::string>;

bool naive(const Words& pattern, std::size_t p, const Words& topic, std::size_t t) {
  if (p == pattern.size()) return t == topic.size();
  if (pattern[p] == "#") {
    for (std::size_t skip = t; skip <= topic.size(); ++skip) {
      if (naive(pattern, p + 1, topic, skip)) return true;
    }
    return false;
  }
  return t < topic.size() && (pattern[p] == "*" || pattern[p] == topic[t]) && naive(pattern, p + 1, topic, t + 1);
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ".") + word;
  return text;
}

RC_GTEST_PROP(Topics, MatchesAsTheNaiveMatcherDoes, ()) {
  const auto pattern_words = *rc::gen::resize(
      7, rc::gen::nonEmpty(rc::gen::container<Words>(rc::gen::element<std::string>("a", "b", "*", "#", "#"))));
  const auto topic_words =
      *rc::gen::resize(7, rc::gen::nonEmpty(rc::gen::container<Words>(rc::gen::element<std::string>("a", "b", "c"))));
  RC_ASSERT(is_pattern(joined(pattern_words)));
  RC_ASSERT(topic_matches(joined(pattern_words), joined(topic_words)) == naive(pattern_words, 0, topic_words, 0));
}

TEST(Topics, AHostilePatternCostsNoMoreThanItsWordsTimesThoseOfTheTopic) {
  std::string pattern = "#", topic = "a";
  for (int i = 0; i < 30; ++i) pattern += ".a.#";
  for (int i = 0; i < 60; ++i) topic += ".a";
  EXPECT_TRUE(topic_matches(pattern, topic));
  EXPECT_FALSE(topic_matches(pattern + ".b", topic));
}

TEST(Topics, OnlyPatternsAreTakenForOnes) {
  for (const char* good : {"a", "*", "#", "a.*.b", "a:b.#", "A-1._x"}) EXPECT_TRUE(is_pattern(good)) << good;
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "a*", "#a", "a b", "ä", "a.\n"}) EXPECT_FALSE(is_pattern(bad)) << bad;
  EXPECT_FALSE(is_pattern(std::string(129, 'a')));
}

TEST(Topics, AnEventWithAnEmptyWordAUniqueKeyOrAPastIsRefusedWithItsReason) {
  const auto problem = [](const Job& event) {
    const Status status = validate_event(event, Time());
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(problem({.kind = "order.created"}), "");
  EXPECT_NE(problem({.kind = "order..created"}).find("empty word"), std::string::npos);
  EXPECT_NE(problem({.kind = "order."}).find("empty word"), std::string::npos);
  EXPECT_NE(problem({.kind = "a", .unique_key = "k"}).find("unique_key"), std::string::npos);
  EXPECT_NE(problem({.kind = "a", .past = std::make_shared<JobPast>()}).find("past"), std::string::npos);
  EXPECT_NE(problem({.kind = "a", .headers = {{"h", std::string(Limits::kHeaderBytes - 1, 'x')}}}).find("bide-event-id"),
            std::string::npos);
}

TEST(Topics, AGroupGetsTheEventUnderAnIdOfItsOwnThatIsTheSameEachTime) {
  std::array<std::uint8_t, JobId::kSize> bytes{1, 2, 3, 4, 5, 6, 0x70, 1, 0x80, 2, 3, 4, 5, 6, 7, 8};
  std::set<JobId> ids;
  for (int event = 0; event < 100; ++event) {
    bytes[15] = static_cast<std::uint8_t>(event);
    for (int queue = 0; queue < 100; ++queue) {
      const std::string name = "q" + std::to_string(queue);
      const JobId id = event_job_id(JobId(bytes), name);
      EXPECT_EQ(id, event_job_id(JobId(bytes), name));
      ids.insert(id);
    }
  }
  EXPECT_EQ(ids.size(), 10'000u);

  const Job event{.id = JobId(bytes), .kind = "a.b", .body = "x"};
  const Job job = event_job(event, {.queue = "q", .patterns = {"#"}, .keep = Milliseconds(50)}, Time(Milliseconds(1000)));
  EXPECT_EQ(job.queue, "q");
  EXPECT_EQ(job.body, "x");
  EXPECT_EQ(job.expires, Time(Milliseconds(1050)));
  EXPECT_EQ(job.headers, (Headers{{std::string(kEventIdHeader), event.id.to_string()}}));
}

}  // namespace
}  // namespace bide::core
