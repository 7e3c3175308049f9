#include "engine/warm_jobs.h"

namespace bide::engine {

std::uint64_t WarmJobs::cost(const Job& job) {
  std::uint64_t bytes = sizeof(Job) + 64 + job.body.size() + job.unique_key.size();
  for (const auto& [name, value] : job.headers) bytes += sizeof name + name.size() + sizeof value + value.size();
  return bytes;
}

WarmJobs::Place* WarmJobs::place_of(Slot slot) {
  for (std::size_t i = home(slot); places_[i].slot != kNoSlot; i = (i + 1) & (places_.size() - 1)) {
    if (places_[i].slot == slot) return &places_[i];
  }
  return nullptr;
}

void WarmJobs::erase(Place* place) {
  bytes_ -= place->bytes;
  const Job gone = std::move(jobs_[place->job]);
  free_.push_back(place->job);
  --used_;
  const std::size_t mask = places_.size() - 1;
  auto hole = static_cast<std::size_t>(place - places_.data());
  for (std::size_t i = (hole + 1) & mask; places_[i].slot != kNoSlot; i = (i + 1) & mask) {
    if (((i - home(places_[i].slot)) & mask) >= ((i - hole) & mask)) {
      places_[hole] = places_[i];
      hole = i;
    }
  }
  places_[hole] = Place{};
}

void WarmJobs::grow() {
  std::vector<Place> old(places_.size() * 2);
  old.swap(places_);
  for (const Place& place : old) {
    if (place.slot == kNoSlot) continue;
    std::size_t i = home(place.slot);
    while (places_[i].slot != kNoSlot) i = (i + 1) & (places_.size() - 1);
    places_[i] = place;
  }
}

void WarmJobs::keep(Slot slot, Job&& job) {
  const std::uint64_t bytes = cost(job);
  if (bytes_ + bytes > most_bytes_) return;
  drop(slot);
  if ((used_ + 1) * 3 > places_.size() * 2) grow();
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
  std::size_t i = home(slot);
  while (places_[i].slot != kNoSlot) i = (i + 1) & (places_.size() - 1);
  places_[i] = {slot, at, bytes};
  ++used_;
}

void WarmJobs::drop(Slot slot) {
  if (Place* place = place_of(slot); place != nullptr) erase(place);
}

Job* WarmJobs::find(Slot slot, const JobId& id) {
  const Place* place = place_of(slot);
  if (place == nullptr) return nullptr;
  // The slot may have been given to another job since: then this is a leftover.
  Job& job = jobs_[place->job];
  return job.id == id ? &job : nullptr;
}

}  // namespace bide::engine
