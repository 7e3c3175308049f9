#include "core/topics.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "bide/events.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::core {

namespace {

// Cuts the first word off.
std::string_view next_word(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  const std::string_view word = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  return word;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) words.push_back(next_word(text));
  return words;
}

bool has_empty_word(std::string_view text) {
  return text.empty() || text.front() == '.' || text.back() == '.' || text.find("..") != std::string_view::npos;
}

bool is_wildcard(std::string_view word) { return word == "*" || word == "#"; }

Error invalid(std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; }

// A bijection of 64 bits (the finaliser of SplitMix64).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

bool is_pattern(std::string_view text) {
  if (text.size() > Limits::kNameBytes || has_empty_word(text)) return false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = next_word(rest);
    // A word that begins with a colon can be in a topic, but not at its start.
    if (!is_wildcard(word) && !is_name("x" + std::string(word))) return false;
  }
  return true;
}

bool has_wildcard(std::string_view pattern) { return pattern.find_first_of("*#") != std::string_view::npos; }

bool topic_matches(std::string_view pattern, std::string_view topic) {
  if (!has_wildcard(pattern)) return pattern == topic;
  // matched[i]: the pattern up to here matches the first i words.
  const std::vector<std::string_view> words = words_of(topic);
  std::vector<char> matched(words.size() + 1, 0);
  matched[0] = 1;
  while (!pattern.empty()) {
    const std::string_view word = next_word(pattern);
    if (word == "#") {
      const auto first = std::find(matched.begin(), matched.end(), 1);
      std::fill(first, matched.end(), 1);
      continue;
    }
    for (std::size_t i = words.size(); i > 0; --i) matched[i] = matched[i - 1] && (word == "*" || word == words[i - 1]);
    matched[0] = 0;
  }
  return matched.back() != 0;
}

bool is_bound_to(const Binding& binding, std::string_view topic) {
  return std::any_of(binding.patterns.begin(), binding.patterns.end(),
                     [&](const std::string& pattern) { return topic_matches(pattern, topic); });
}

Status validate_event(const Job& event, Time now) {
  if (Status valid = validate(event, now); !valid) return valid;
  if (has_empty_word(event.kind)) {
    return invalid("topic " + quoted(event.kind) + " has an empty word; allowed: words between single dots, such as order.created");
  }
  if (!event.unique_key.empty()) {
    return invalid("unique_key: an event has none, since each group gets a job of its own; give the event an id");
  }
  std::size_t bytes = kEventIdHeader.size() + JobId().to_string().size();
  for (const auto& [name, value] : event.headers) bytes += name.size() + value.size();
  if (bytes > Limits::kHeaderBytes) {
    return invalid("headers have " + std::to_string(bytes) + " bytes with " + std::string(kEventIdHeader) + "; allowed: " +
                   std::to_string(Limits::kHeaderBytes));
  }
  if (event.past) return invalid("past: an event has none");
  return {};
}

Status validate(const Binding& binding) {
  if (!is_name(binding.queue)) return invalid("invalid queue name " + quoted(binding.queue) + std::string(kNameRule));
  if (binding.patterns.size() > kMostPatterns) {
    return invalid("queue " + quoted(binding.queue) + " is bound to " + std::to_string(binding.patterns.size()) +
                   " patterns; allowed: " + std::to_string(kMostPatterns));
  }
  for (const std::string& pattern : binding.patterns) {
    if (is_pattern(pattern)) continue;
    return invalid("invalid pattern " + quoted(pattern) +
                   "; allowed: words of A-Z a-z 0-9 _ - : between dots, * for one word, # for any number of words");
  }
  for (const auto& [name, limit] : {std::pair{"keep", binding.keep}, std::pair{"idle", binding.idle}}) {
    if (limit >= Milliseconds(0) && limit <= Limits::kDelay) continue;
    return invalid(std::string(name) + " " + std::to_string(limit.count()) + " ms is out of range; allowed: 0 to 100 years");
  }
  return {};
}

Job event_job(const Job& event, const Binding& binding, Time now) {
  Job job = event;
  job.id = event_job_id(event.id, binding.queue);
  job.queue = binding.queue;
  job.headers.emplace_back(kEventIdHeader, event.id.to_string());
  if (binding.keep > Milliseconds(0)) {
    const Time kept = std::max(now, job.due.value_or(now + job.delay)) + binding.keep;
    job.expires = std::min(job.expires.value_or(kept), kept);
  }
  return job;
}

JobId event_job_id(const JobId& event, std::string_view queue) {
  // Two lanes of FNV-1a over the name, each stirred with one half of the id.
  std::uint64_t a = 0xcbf29ce484222325u, b = 0x6c62272e07bb0142u;
  for (const char c : queue) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    b = (b ^ static_cast<unsigned char>(c)) * 0x9e3779b97f4a7c15u;
  }
  std::array<std::uint8_t, JobId::kSize> bytes = event.bytes();
  std::uint64_t high = 0, low = 0;
  std::memcpy(&high, bytes.data(), sizeof high);
  std::memcpy(&low, bytes.data() + 8, sizeof low);
  low = mixed(low ^ mixed(a ^ mixed(high)));
  const std::uint64_t rest = mixed(b ^ low ^ high);
  for (std::size_t i = 0; i < 8; ++i) bytes[8 + i] = static_cast<std::uint8_t>(low >> (8 * i));
  bytes[6] = static_cast<std::uint8_t>(0x70u | (rest & 0x0fu));  // Version 7, as the ids that bide makes.
  bytes[7] = static_cast<std::uint8_t>(rest >> 8);
  bytes[8] = static_cast<std::uint8_t>(0x80u | (bytes[8] & 0x3fu));
  return JobId(bytes);
}

}  // namespace bide::core
