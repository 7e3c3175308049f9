#include "engine/warm_jobs.h"

#include <utility>

namespace bide::engine {

std::uint64_t WarmJobs::cost(const Job& job) {
  std::uint64_t bytes = sizeof(Job) + 64 + job.body.size() + job.unique_key.size();
  for (const auto& [name, value] : job.headers) bytes += sizeof name + name.size() + sizeof value + value.size();
  return bytes;
}

std::uint32_t* WarmJobs::place_of(Slot slot) {
  const std::size_t page = slot >> kPageBits;
  if (page >= pages_.size() || pages_[page] == nullptr) return nullptr;
  std::uint32_t& place = pages_[page]->places[slot & ((1u << kPageBits) - 1)];
  return place == kNone ? nullptr : &place;
}

void WarmJobs::release(Slot slot, std::uint32_t* place, std::uint64_t bytes) {
  bytes_ -= bytes;
  free_.push_back(*place);
  *place = kNone;
  std::unique_ptr<Page>& page = pages_[slot >> kPageBits];
  if (--page->used == 0) spare_ = std::move(page);
}

void WarmJobs::keep(Slot slot, Job&& job) {
  const std::uint64_t bytes = cost(job);
  if (bytes_ + bytes > most_bytes_) return;
  drop(slot);
  const std::size_t number = slot >> kPageBits;
  if (number >= pages_.size()) pages_.resize(number + 1);
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) page = spare_ != nullptr ? std::move(spare_) : std::make_unique<Page>();
  std::uint32_t at = 0;
  if (free_.empty()) {
    at = static_cast<std::uint32_t>(jobs_.size());
    jobs_.push_back(std::move(job));
  } else {
    at = free_.back();
    free_.pop_back();
    jobs_[at] = std::move(job);
  }
  bytes_ += bytes;
  page->places[slot & ((1u << kPageBits) - 1)] = at;
  ++page->used;
}

void WarmJobs::drop(Slot slot) {
  std::uint32_t* place = place_of(slot);
  if (place == nullptr) return;
  const Job gone = std::move(jobs_[*place]);
  release(slot, place, cost(gone));
}

bool WarmJobs::take(Slot slot, const JobId& id, Job& into) {
  std::uint32_t* place = place_of(slot);
  if (place == nullptr) return false;
  Job& job = jobs_[*place];
  if (job.id != id) {
    drop(slot);  // The slot was given to another job since: this is a leftover.
    return false;
  }
  const std::uint64_t bytes = cost(job);
  into = std::move(job);
  release(slot, place, bytes);
  return true;
}

}  // namespace bide::engine
