// SqlSession::transact, for the files that the session is made of.

#pragma once

#include "brokers/sql/sql_session.h"

namespace bide::brokers::sql {

template <class Step>
auto SqlSession::transact_as(Step step) -> decltype(step()) {
  constexpr int kTries = 10;
  for (int tries = 1;; ++tries) {
    told_.clear();
    connection_->begin();
    auto result = step();
    if (result) return result;
    const Failure failure = connection_->last_failure();
    connection_->rollback();
    const bool again = failure == Failure::kConflict || failure == Failure::kDuplicate;
    if (!again || tries == kTries) return result;
  }
}

template <class T, class Step>
Result<T> SqlSession::transact(Step step) {
  return transact_as(std::move(step));
}

template <class Step>
Status SqlSession::do_transact(Step step) {
  return transact_as(std::move(step));
}

}  // namespace bide::brokers::sql
