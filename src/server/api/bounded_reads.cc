#include "server/api/bounded_reads.h"

#include <utility>

namespace bide::server {

// Also when the completion throws: the others must not wait for ever.
struct BoundedReads::Ended {
  BoundedReads& reads;
  ~Ended() {
    {
      std::lock_guard lock(reads.mutex_);
      --reads.under_way_;
    }
    reads.start_waiting();
  }
};

template <class T>
Completion<T> BoundedReads::then_next(Completion<T> done) {
  return [self = shared_from_this(), done = std::move(done)](Result<T> result) {
    const Ended ended{*self};
    done(std::move(result));
  };
}

void BoundedReads::find(const JobId& id, Completion<JobInfo> done) {
  add([this, id, done = then_next(std::move(done))] { inspector_.find(id, done); });
}

void BoundedReads::list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) {
  add([this, filter = std::move(filter), cursor = std::move(cursor), limit, done = then_next(std::move(done))] {
    inspector_.list(filter, cursor, limit, done);
  });
}

void BoundedReads::add(std::function<void()> read) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(read));
  }
  start_waiting();
}

void BoundedReads::start_waiting() {
  for (std::unique_lock lock(mutex_); !starting_ && under_way_ < kAtOnce && !waiting_.empty();) {
    const std::function<void()> read = std::move(waiting_.front());
    waiting_.pop_front();
    ++under_way_;
    starting_ = true;  // A read that completes at once would start the next within itself, and so on.
    lock.unlock();
    read();
    lock.lock();
    starting_ = false;
  }
}

}  // namespace bide::server
