#include "server/http/connections.h"

#include <algorithm>
#include <utility>

#include "server/http/session.h"

namespace bide::server {

void Connections::add(Session& session) {
  const std::lock_guard lock(mutex_);
  open_.insert(&session);
}

void Connections::remove(Session& session) {
  const std::lock_guard lock(mutex_);
  if (open_.erase(&session) == 1 && open_.empty()) none_.notify_all();
}

std::size_t Connections::count() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

// In both, what is returned is let go of by the caller, without the lock: the last one to hold a session destroys it, and
// that removes it here.
std::vector<std::shared_ptr<Session>> Connections::all() const {
  std::vector<std::shared_ptr<Session>> found;
  const std::lock_guard lock(mutex_);
  found.reserve(open_.size());
  for (Session* session : open_) found.push_back(session->weak_from_this().lock());
  std::erase(found, nullptr);
  return found;
}

std::vector<std::shared_ptr<Session>> Connections::overdue(std::chrono::steady_clock::time_point now) const {
  std::vector<std::shared_ptr<Session>> found;
  const std::lock_guard lock(mutex_);
  for (Session* session : open_) {
    if (session->is_overdue(now)) found.push_back(session->weak_from_this().lock());
  }
  std::erase(found, nullptr);
  return found;
}

bool Connections::give_up_stalled(Share share, std::uint64_t bytes, std::chrono::steady_clock::time_point before) const {
  struct Found {
    std::shared_ptr<Session> session;
    Session::Stall stall;
  };
  std::vector<Found> found;
  {
    const std::lock_guard lock(mutex_);
    for (Session* session : open_) {
      const Session::Stall stall = session->stall();
      if (stall.bytes == 0 || stall.share != share || stall.since > before) continue;
      if (auto alive = session->weak_from_this().lock()) found.push_back({std::move(alive), stall});
    }
  }
  std::uint64_t all = 0;
  for (const Found& one : found) all += one.stall.bytes;
  if (all < bytes) return false;
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.stall.since < b.stall.since; });
  std::uint64_t freed = 0;
  for (const Found& one : found) {
    if (freed < bytes) freed += one.session->give_up_stalled(one.stall);
  }
  return freed >= bytes;
}

bool Connections::wait_for_none(std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  return none_.wait_for(lock, patience, [this] { return open_.empty(); });
}

}  // namespace bide::server
