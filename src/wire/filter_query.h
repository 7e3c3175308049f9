// JobFilter as the query of a URL: ?state=ready,scheduled&queue=mail&kind=send&group=tenant:42&flow=...&header.tenant=acme
// &error=timeout&since=...&until=...&cursor=...&limit=50&bodies=true

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "bide/inspector.h"
#include "wire/problem.h"

namespace bide::wire {

struct ListRequest {
  JobFilter filter = {};
  std::string cursor = {};
  std::size_t limit = 50;  // 1 to kLongestPage.
};

inline constexpr std::size_t kLongestPage = 1000;

// Any other name is a problem. An empty value is as good as none.
std::optional<Problem> read_list_query(const std::map<std::string, std::string>& query, ListRequest& request);

// One field of a filter by its name above, which is one of them and not header. An empty value changes nothing.
std::optional<Problem> read_filter_field(std::string_view name, std::string_view value, JobFilter& filter);
// 422 when a queue, or a kind, cannot have this name.
std::optional<Problem> find_name_problem(const Job& named);
std::optional<Problem> take_limit(const std::string& text, std::size_t& out);
std::optional<Problem> read_state(std::string_view text, JobState& out);

// Percent-encoded, without the question mark.
std::string list_query(const ListRequest& request);

}  // namespace bide::wire
