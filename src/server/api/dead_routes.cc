// The dead set: replaying and deleting, by id or everything that matches a filter.

#include <algorithm>
#include <utility>

#include "server/api/api_state.h"
#include "server/api/queue_limits.h"
#include "wire/change_json.h"
#include "wire/info_json.h"

namespace bide::server {

namespace {

constexpr std::size_t kPage = 500;
constexpr std::size_t kShownProblems = 10;

// Does one thing to jobs, page by page, until no more match.
class Sweep : public std::enable_shared_from_this<Sweep> {
 public:
  using Act = std::function<void(std::vector<JobId>, Completion<std::vector<Status>>)>;

  Sweep(State state, std::shared_ptr<Inspector> inspector, Reply reply, wire::Choice choice, Act act)
      : state_(std::move(state)), inspector_(std::move(inspector)), reply_(std::move(reply)), choice_(std::move(choice)), act_(std::move(act)) {
    choice_.filter->states = {JobState::kDead};
    choice_.filter->bodies = false;
    // What dies again meanwhile is not for this request: it would go on for ever.
    if (!choice_.filter->until) choice_.filter->until = state_->now();
  }

  void start() {
    reply_.on_gone([self = weak_from_this()] {
      if (const auto sweep = self.lock()) sweep->gone_ = true;
    });
    next_page();
  }

 private:
  void next_page() {
    const std::uint64_t left = choice_.limit == 0 ? kPage : choice_.limit - matched_;
    if (left == 0 || gone_) return answer();
    inspector_->list(*choice_.filter, cursor_, std::min<std::size_t>(left, kPage),
                            [self = shared_from_this()](Result<JobPage> page) {
                              if (!page) return self->stop(page.error());
                              self->take_page(std::move(*page));
                            });
  }

  void take_page(JobPage page) {
    cursor_ = std::move(page.next);
    matched_ += page.jobs.size();
    std::vector<JobId> ids;
    for (const JobInfo& info : page.jobs) ids.push_back(info.job.id);
    if (ids.empty() || choice_.dry_run) return cursor_.empty() ? answer() : next_page();
    act_(ids, [self = shared_from_this(), ids](const Result<std::vector<Status>>& statuses) {
      if (!statuses) return self->stop(statuses.error());
      for (std::size_t i = 0; i < ids.size() && i < statuses->size(); ++i) self->take_status(ids[i], (*statuses)[i]);
      if (self->cursor_.empty()) return self->answer();
      self->next_page();
    });
  }

  void take_status(const JobId& id, const Status& status) {
    if (status) {
      ++succeeded_;
      return;
    }
    ++failed_;
    if (problems_.size() < kShownProblems) problems_.emplace_back(id, wire::problem_of(status.error()));
  }

  // Pages before may have been dealt with: then it is not true that nothing was done.
  void stop(Error error) {
    if (succeeded_ + failed_ > 0) {
      error = {ErrorCode::kUnconfirmed, std::to_string(succeeded_) + " jobs were dealt with, then: " + error.message};
    }
    refuse(reply_, state_->problem_of(error));
  }

  void answer() {
    std::string text;
    wire::JsonWriter out(text);
    out.begin_object().field("matched", matched_).field("succeeded", succeeded_).field("failed", failed_);
    out.field("dry_run", choice_.dry_run).name("problems").begin_array();
    for (const auto& [id, problem] : problems_) {
      out.begin_object().field("id", id).name("problem");
      write(out, problem);
      out.end_object();
    }
    out.end_array().end_object();
    reply_.send(json_response(200, std::move(text)));
  }

  const State state_;
  const std::shared_ptr<Inspector> inspector_;  // As the caller sees it.
  Reply reply_;
  wire::Choice choice_;
  const Act act_;
  std::atomic<bool> gone_ = false;
  std::string cursor_;
  std::uint64_t matched_ = 0;
  std::uint64_t succeeded_ = 0;
  std::uint64_t failed_ = 0;
  std::vector<std::pair<JobId, wire::Problem>> problems_;
};

void act_on(const State& state, std::shared_ptr<Inspector> inspector, Reply reply, wire::Choice choice, Sweep::Act act) {
  if (choice.filter) {
    std::make_shared<Sweep>(state, std::move(inspector), std::move(reply), std::move(choice), std::move(act))->start();
    return;
  }
  const std::vector<JobId> ids = choice.ids;
  act(std::move(choice.ids),
      [state, ids, reply = share(std::move(reply))](const Result<std::vector<Status>>& statuses) {
        if (!statuses) return refuse(*reply, state->problem_of(statuses.error()));
        reply->send(json_response(200, wire::id_results_json(ids, *statuses)));
      });
}

void replay(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {}) || !is_json_request(request, reply)) return;
  wire::ReplayRequest wanted;
  if (auto problem = wire::read_replay(request.body, wanted)) return refuse(reply, *problem);
  const auto inspector = inspector_for(state, request.caller);
  act_on(state, inspector, std::move(reply), std::move(wanted.choice),
         [inspector, options = wanted.options](std::vector<JobId> ids, Completion<std::vector<Status>> done) {
           inspector->replay(std::move(ids), options, std::move(done));
         });
}

void remove(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {}) || !is_json_request(request, reply)) return;
  wire::Choice choice;
  if (auto problem = wire::read_choice(request.body, choice)) return refuse(reply, *problem);
  const auto inspector = inspector_for(state, request.caller);
  act_on(state, inspector, std::move(reply), std::move(choice),
         [inspector](std::vector<JobId> ids, Completion<std::vector<Status>> done) {
           // A job that was replayed meanwhile is not to be cancelled by somebody who tidies up.
           inspector->cancel(std::move(ids), {.state = JobState::kDead}, std::move(done));
         });
}

}  // namespace

void add_dead_routes(const State& state, Routes& routes) {
  routes.push_back({Method::kPost, "/v1/dead/replay", Scope::kAdmin, "Put dead jobs back to be run again",
                    [state](const Request& request, Reply reply) { replay(state, request, std::move(reply)); }, true, kListBody});
  routes.push_back({Method::kPost, "/v1/dead/delete", Scope::kAdmin, "Delete dead jobs",
                    [state](const Request& request, Reply reply) { remove(state, request, std::move(reply)); }, true, kListBody});
}

}  // namespace bide::server
