#include "server/api/bulk_operation.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "core/dead_grouping.h"
#include "wire/info_json.h"

namespace bide::server {

namespace {

constexpr std::size_t kSweepPage = 500;
constexpr std::size_t kShownProblems = 10;

// Applies one call to all jobs that match one of the filters, page by page.
class BulkOperation : public std::enable_shared_from_this<BulkOperation> {
 public:
  BulkOperation(State state, std::shared_ptr<Inspector> inspector, Reply reply, std::vector<JobFilter> filters,
                const wire::Choice& limits, ApplyToJobs apply)
      : state_(std::move(state)),
        inspector_(std::move(inspector)),
        reply_(std::move(reply)),
        filters_(std::move(filters)),
        limit_(limits.limit),
        dry_run_(limits.dry_run),
        like_(limits.like),
        apply_(std::move(apply)) {
    for (JobFilter& filter : filters_) filter.bodies = false;
  }

  void start() {
    reply_.on_gone([self = weak_from_this()] {
      if (const auto operation = self.lock()) operation->gone_ = true;
    });
    if (like_.empty() || core::is_dead_group_id(like_)) return next_page();
    inspector_->find(*JobId::parse(like_), [self = shared_from_this()](const Result<JobInfo>& info) {
      if (!info) return self->stop(info.error());
      if (info->state != JobState::kDead) {
        return self->stop({ErrorCode::kWrongState, "job " + self->like_ + " is not dead but " + std::string(to_string(info->state))});
      }
      self->like_ = dead_group_of(*info);
      self->next_page();
    });
  }

 private:
  void next_page() {
    const std::uint64_t left = limit_ == 0 ? kSweepPage : limit_ - matched_;
    if (left == 0 || gone_) return answer();
    const std::size_t size = like_.empty() ? std::min<std::size_t>(left, kSweepPage) : kSweepPage;
    inspector_->list(filters_[at_], cursor_, size,
                     [self = shared_from_this()](Result<JobPage> page) {
                       if (!page) return self->stop(page.error());
                       self->on_page(std::move(*page));
                     });
  }

  void on_page(JobPage page) {
    cursor_ = std::move(page.next);
    if (!like_.empty()) {
      std::erase_if(page.jobs, [&](const JobInfo& info) { return dead_group_of(info) != like_; });
      if (limit_ != 0 && page.jobs.size() > limit_ - matched_) page.jobs.resize(limit_ - matched_);
    }
    matched_ += page.jobs.size();
    std::vector<JobId> ids;
    for (const JobInfo& info : page.jobs) ids.push_back(info.job.id);
    if (ids.empty() || dry_run_) return go_on();
    apply_(ids, [self = shared_from_this(), ids](const Result<std::vector<Status>>& statuses) {
      if (!statuses) return self->stop(statuses.error());
      for (std::size_t i = 0; i < ids.size() && i < statuses->size(); ++i) self->count(ids[i], (*statuses)[i]);
      self->go_on();
    });
  }

  void go_on() {
    if (cursor_.empty() && ++at_ == filters_.size()) return answer();
    next_page();
  }

  void count(const JobId& id, const Status& status) {
    if (status) {
      ++succeeded_;
      return;
    }
    ++failed_;
    if (problems_.size() < kShownProblems) problems_.emplace_back(id, wire::problem_of(status.error()));
  }

  // With earlier pages done, the error must not say that nothing was.
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
    out.field("dry_run", dry_run_).name("problems").begin_array();
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
  std::vector<JobFilter> filters_;
  const std::uint64_t limit_;
  const bool dry_run_;
  std::string like_;  // Only of this group of dead jobs.
  const ApplyToJobs apply_;
  std::atomic<bool> gone_ = false;
  std::size_t at_ = 0;  // Of the filters.
  std::string cursor_;
  std::uint64_t matched_ = 0;
  std::uint64_t succeeded_ = 0;
  std::uint64_t failed_ = 0;
  std::vector<std::pair<JobId, wire::Problem>> problems_;
};

}  // namespace

void apply_to(const State& state, std::shared_ptr<Inspector> inspector, Reply reply, wire::Choice choice,
              ApplyToJobs apply) {
  if (choice.filter) {
    std::vector<JobFilter> filters = {std::move(*choice.filter)};
    return apply_to_each(state, std::move(inspector), std::move(reply), std::move(filters), std::move(choice), std::move(apply));
  }
  apply(choice.ids, answer_with<std::vector<Status>>(state, share(std::move(reply)),
                                                     [ids = choice.ids](const std::vector<Status>& statuses) {
                                                       return wire::id_results_json(ids, statuses);
                                                     }));
}

void apply_to_each(const State& state, std::shared_ptr<Inspector> inspector, Reply reply, std::vector<JobFilter> filters,
                   wire::Choice limits, ApplyToJobs apply) {
  std::make_shared<BulkOperation>(state, std::move(inspector), std::move(reply), std::move(filters), limits, std::move(apply))
      ->start();
}

void cancel_jobs(const State& state, Inspector& inspector, std::vector<JobId> ids, CancelOptions options,
                 Completion<std::vector<Status>> done) {
  inspector.cancel(ids, options, [state, ids, done = std::move(done)](Result<std::vector<Status>> statuses) {
    for (std::size_t i = 0; statuses && i < ids.size() && i < statuses->size(); ++i) {
      if ((*statuses)[i]) state->add_cancelled(ids[i]);
    }
    done(std::move(statuses));
  });
}

}  // namespace bide::server
