// Dead jobs by kind and error: GET /v1/dead/groups, and the jobs of one group.

#include <algorithm>
#include <utility>

#include "core/dead_grouping.h"
#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "wire/dashboard_json.h"
#include "wire/filter_query.h"

namespace bide::server {

namespace {

// More would keep the caller, and everybody else who reads, waiting for too long.
constexpr std::uint64_t kMostLookedAt = 20'000;
constexpr std::uint64_t kMostLookedAtForPage = 5'000;
constexpr std::size_t kPageOfGroups = 1'000;

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
  const auto grouping = std::make_shared<core::DeadGrouping>();
  const auto scan = std::make_shared<DeadScan>(inspector_for(state, request.caller), std::move(wanted.filter), kMostLookedAt);
  scan->start(
      "", kPageOfGroups,
      [grouping](const JobInfo& info) {
        grouping->add(info);
        return true;
      },
      [state, shared, grouping](const Error* error, const std::string& next) {
        if (error != nullptr) return refuse(*shared, state->problem_of(*error));
        shared->send(json_response(200, wire::dead_groups_json(grouping->take(next.empty()))));
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
        if (dead_group_of(info) == id) page->ids.push_back(info.job.id);
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
