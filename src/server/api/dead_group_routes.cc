// Dead jobs by kind and error: GET /v1/dead/groups, and the jobs of one group.

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/quote.h"
#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "server/api/error_folding.h"
#include "wire/dashboard_json.h"
#include "wire/filter_query.h"

namespace bide::server {

namespace {

// More would keep the caller, and everybody else who reads, waiting for too long.
constexpr std::uint64_t kMostLookedAt = 20'000;
constexpr std::uint64_t kMostLookedAtForPage = 5'000;
constexpr std::size_t kMostGroups = 200;
constexpr std::size_t kMostQueues = 10;
constexpr std::size_t kPageOfGroups = 1'000;

std::string error_of(const JobInfo& info) {
  if (!info.history.empty()) return fold_error(info.history.back().text);
  return info.dead_reason ? std::string(to_string(*info.dead_reason)) : std::string();
}

// 64 bits of FNV-1a: enough to tell some hundred groups apart, and the same in every process.
std::string group_id(std::string_view kind, std::string_view error) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  add(kind);
  add(std::string_view("\0", 1));
  add(error);
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[hash >> shift & 15];
  return text;
}

// Looks through the dead set, page by page, until it has seen enough.
class DeadScan : public std::enable_shared_from_this<DeadScan> {
 public:
  using See = std::function<bool(const JobInfo&)>;  // False: enough.
  // `next`: where to go on; empty: that was all.
  using Done = std::function<void(const Error* error, std::string next)>;

  DeadScan(std::shared_ptr<Inspector> inspector, JobFilter filter, std::uint64_t most)
      : inspector_(std::move(inspector)), filter_(std::move(filter)), left_(most) {
    filter_.states = {JobState::kDead};
    filter_.bodies = false;
  }

  // `page`: what is seen of a page is all of it, so that its cursor can be given to the caller.
  void start(std::string cursor, std::size_t page, See see, Done done) {
    page_ = page;
    see_ = std::move(see);
    done_ = std::move(done);
    next(std::move(cursor));
  }

 private:
  void next(std::string cursor) {
    inspector_->list(filter_, std::move(cursor), page_, [self = shared_from_this()](Result<JobPage> page) {
      if (!page) return self->done_(&page.error(), "");
      bool enough = false;
      for (const JobInfo& info : page->jobs) enough = !self->see_(info) || enough;
      self->left_ -= std::min<std::uint64_t>(self->left_, page->jobs.size());
      if (enough || self->left_ == 0 || page->next.empty()) return self->done_(nullptr, std::move(page->next));
      self->next(std::move(page->next));
    });
  }

  const std::shared_ptr<Inspector> inspector_;
  JobFilter filter_;
  std::uint64_t left_;
  std::size_t page_ = 0;
  See see_;
  Done done_;
};

void list_groups(const State& state, const Request& request, Reply reply) {
  wire::ListRequest wanted;
  if (auto problem = wire::read_list_query(request.query, wanted)) return refuse(reply, *problem);
  const auto shared = share(std::move(reply));
  using Key = std::pair<std::string, std::string>;
  const auto groups = std::make_shared<std::map<Key, wire::DeadGroup>>();
  const auto answer = std::make_shared<wire::DeadGroups>();
  const auto scan = std::make_shared<DeadScan>(inspector_for(state, request.caller), std::move(wanted.filter), kMostLookedAt);
  scan->start(
      "", kPageOfGroups,
      [groups, answer](const JobInfo& info) {
        ++answer->looked_at;
        Key key{info.job.kind, error_of(info)};
        const Time died = info.finished.value_or(info.due);
        auto found = groups->find(key);
        if (found == groups->end()) {
          if (groups->size() >= kMostGroups) key = {"(other)", "(other)"};
          found = groups->try_emplace(key).first;
          wire::DeadGroup& made = found->second;
          if (made.count == 0) {
            made = {.id = group_id(key.first, key.second), .kind = key.first, .error = key.second, .first = died, .last = died, .example = info.job.id};
          }
        }
        wire::DeadGroup& group = found->second;
        ++group.count;
        if (died > group.last) std::tie(group.last, group.example) = std::tie(died, info.job.id);
        group.first = std::min(group.first, died);
        if (group.queues.size() < kMostQueues &&
            std::find(group.queues.begin(), group.queues.end(), info.job.queue) == group.queues.end()) {
          group.queues.push_back(info.job.queue);
        }
        return true;
      },
      [state, shared, groups, answer](const Error* error, const std::string& next) {
        if (error != nullptr) return refuse(*shared, state->problem_of(*error));
        answer->complete = next.empty();
        for (auto& [key, group] : *groups) answer->groups.push_back(std::move(group));
        std::stable_sort(answer->groups.begin(), answer->groups.end(),
                         [](const auto& one, const auto& other) { return one.count > other.count; });
        shared->send(json_response(200, wire::dead_groups_json(*answer)));
      });
}

void list_group(const State& state, const Request& request, Reply reply) {
  wire::ListRequest wanted;
  if (auto problem = wire::read_list_query(request.query, wanted)) return refuse(reply, *problem);
  const auto shared = share(std::move(reply));
  const auto page = std::make_shared<wire::DeadGroupPage>();
  const auto scan = std::make_shared<DeadScan>(inspector_for(state, request.caller), std::move(wanted.filter), kMostLookedAtForPage);
  scan->start(
      std::move(wanted.cursor), wanted.limit,
      [page, id = request.captured.at("id"), limit = wanted.limit](const JobInfo& info) {
        if (group_id(info.job.kind, error_of(info)) == id) page->ids.push_back(info.job.id);
        return page->ids.size() < limit;
      },
      [state, shared, page](const Error* error, std::string next) {
        if (error != nullptr) return refuse(*shared, state->problem_of(*error));
        if (!next.empty()) page->next = std::move(next);
        shared->send(json_response(200, wire::dead_group_page_json(*page)));
      });
}

}  // namespace

void add_dead_group_routes(const State& state, Routes& routes) {
  constexpr RouteChecks kList{.inspector = true, .query = false};  // wire::read_list_query() checks it.
  add_route(state, routes,
            {.pattern = "/v1/dead/groups", .scope = Scope::kRead, .summary = "Dead jobs by kind and error",
             .keeps_to_queues = true,
             .operation = {.id = "listDeadGroups", .answers = {{200, "DeadGroups"}},
                           .query = {"queue", "kind", "group", "flow", "header.NAME", "error", "since", "until"}}},
            &list_groups, kList);
  add_route(state, routes,
            {.pattern = "/v1/dead/groups/{id}", .scope = Scope::kRead, .summary = "The ids of a group of dead jobs",
             .keeps_to_queues = true,
             .operation = {.id = "getDeadGroup", .answers = {{200, "DeadGroupPage"}},
                           .query = {"queue", "kind", "group", "flow", "header.NAME", "error", "since", "until", "cursor", "limit"}}},
            &list_group, kList);
}

}  // namespace bide::server
