// Engine, backups: planned by the engine's thread between two commits, made by a thread of their own.

#include <memory>
#include <utility>

#include "engine/engine.h"

namespace bide::engine {

void Engine::backup(std::string target, Completion<void> done) {
  if (options_.disk != &platform::real_disk()) return done(Error{ErrorCode::kUnsupported, "the store is not on a real disk"});
  if (Status claimed = backups_.claim(target, wall_time()); !claimed) return done(claimed.error());
  const auto plan = std::make_shared<Result<BackupPlan>>(Error{ErrorCode::kUnavailable, "the engine is closed"});
  Request request{[plan](Ledger& ledger) { *plan = ledger.begin_backup(); },
                  [this, plan, done](const Status& committed) {
                    if (!committed) *plan = committed.error();
                    const Status planned = *plan ? Status() : Status(plan->error());
                    backups_.make(std::move(*plan), [requests = requests_] {
                      requests->post({[](Ledger& ledger) { ledger.end_backup(); }, nullptr});
                    });
                    done(planned);
                  }};
  request.alone = true;
  if (requests_->post(std::move(request))) return;
  backups_.make(plan->error(), nullptr);
  done(plan->error());
}

void Engine::backup_info(Completion<BackupInfo> done) { done(backups_.info()); }

}  // namespace bide::engine
