// BoundedReads: reads jobs at the broker, a few requests at a time. What was read is in memory with its bodies until its
// answer is made, so a thousand clients that ask for large jobs at once must not have a thousand of them read.

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "bide/inspector.h"

namespace bide::server {

// Safe to share between threads.
class BoundedReads : public std::enable_shared_from_this<BoundedReads> {
 public:
  static constexpr int kAtOnce = 2;

  // The inspector must outlive every read.
  explicit BoundedReads(Inspector& inspector) : inspector_(inspector) {}

  // As of the inspector. The next read begins when `done` has returned.
  void find(const JobId& id, Completion<JobInfo> done);
  void list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done);

 private:
  struct Ended;

  template <class T>
  Completion<T> then_next(Completion<T> done);
  void add(std::function<void()> read);
  void start_waiting();

  Inspector& inspector_;

  std::mutex mutex_;  // Guards everything below.
  std::deque<std::function<void()>> waiting_;
  int under_way_ = 0;
  bool starting_ = false;
};

}  // namespace bide::server
