#include "brokers/redis/script_arguments.h"

#include "brokers/redis/job_string.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::brokers::redis {

void ScriptArguments::add_job(const Job& job) {
  add_id(job.id);
  add(job.past ? std::int64_t{-1} : static_cast<std::int64_t>(job.delay.count()));
  // A job with a past has a due time, or is due now.
  add(job.due ? std::to_string(job.due->time_since_epoch().count()) : std::string());
  add(job.priority - core::kLowestPriority);
  add(job.queue);
  add(job.unique_key);
  add(encode_new_job(job));
}

void ScriptArguments::add_ending(const database::Ending& ending) {
  static const std::string none;
  add_lease(ending.lease);
  add(static_cast<int>(ending.how));
  add(ending.is_settled ? 1 : 0);
  add(ending.after.count());
  add(static_cast<int>(ending.fault));
  add(static_cast<int>(ending.how == database::Ends::kExpired ? DeadReason::kExpired : ending.reason));
  add(ending.error);
  add(ending.how == database::Ends::kExpired ? std::string(database::kExpiredNote) : std::string(ending.note));
  add(ending.result);
  add(ending.content_type);
  add(ending.body ? 1 : 0);
  add(ending.body ? *ending.body : none);
  add(ending.effects.size());
  for (const Job& effect : ending.effects) add_job(effect);
}

Error key_is_held(const std::string& key, std::string_view holder_bytes) {
  return {ErrorCode::kAlreadyExists,
          "the unique key " + core::quoted(key) + " is held by job " + id_in(holder_bytes).to_string()};
}

}  // namespace bide::brokers::redis
