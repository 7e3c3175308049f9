#include "engine/job_cache.h"

#include <memory>
#include <utility>

namespace bide::engine {

namespace {

// Assigning would look at each of its strings twice.
void replace(Job& into, Job&& with) {
  std::destroy_at(&into);
  std::construct_at(&into, std::move(with));
}

}  // namespace

std::uint64_t JobCache::content_bytes(const Job& job) {
  std::uint64_t bytes = 64 + job.body.size() + job.unique_key.size();
  for (const auto& [name, value] : job.headers) bytes += sizeof name + name.size() + sizeof value + value.size();
  return bytes;
}

JobCache::BatchNumber JobCache::open(std::vector<Job> jobs) {
  BatchNumber number = static_cast<BatchNumber>(batches_.size());
  if (free_.empty()) {
    batches_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Batch& batch = batches_[number];
  batch.jobs = std::move(jobs);
  batch.is_open = true;
  return number;
}

bool JobCache::keep(Slot slot, BatchNumber in, std::size_t index) {
  Batch& batch = batches_[in];
  const std::uint64_t frame = batch.kept == 0 ? batch.jobs.size() * sizeof(Job) : 0;
  const std::uint64_t content = content_bytes(batch.jobs[index]);
  if (bytes_ + frame + content > most_bytes_) return false;
  drop(slot);
  const std::size_t number = slot >> kPageBits;
  if (number >= pages_.size()) pages_.resize(number + 1);
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) page = spare_ != nullptr ? std::move(spare_) : std::make_unique<Page>();
  page->places[slot & ((1u << kPageBits) - 1)] = {in, static_cast<std::uint32_t>(index)};
  ++page->used;
  ++batch.kept;
  batch.bytes += frame;
  bytes_ += frame + content;
  return true;
}

void JobCache::skip(BatchNumber batch, std::size_t index) {
  batches_[batch].skipped.push_back(static_cast<std::uint32_t>(index));
}

void JobCache::close(BatchNumber number) {
  Batch& batch = batches_[number];
  batch.is_open = false;
  if (batch.kept == 0) {
    free(number);
  } else {
    // The batch may stay for long because of the others.
    for (const std::uint32_t index : batch.skipped) batch.jobs[index] = Job{};
  }
  batch.skipped.clear();
}

void JobCache::free(BatchNumber number) {
  Batch& batch = batches_[number];
  bytes_ -= std::exchange(batch.bytes, 0);
  garbage_.push_back(std::move(batch.jobs));
  free_.push_back(number);
}

JobCache::Place* JobCache::place_of(Slot slot) {
  const std::size_t page = slot >> kPageBits;
  if (page >= pages_.size() || pages_[page] == nullptr) return nullptr;
  Place& place = pages_[page]->places[slot & ((1u << kPageBits) - 1)];
  return place.batch == kNone ? nullptr : &place;
}

void JobCache::release(Slot slot, Place* place, std::uint64_t bytes) {
  bytes_ -= bytes;
  const BatchNumber number = std::exchange(*place, Place{}).batch;
  Batch& batch = batches_[number];
  if (--batch.kept == 0 && !batch.is_open) free(number);
  std::unique_ptr<Page>& page = pages_[slot >> kPageBits];
  if (--page->used == 0) spare_ = std::move(page);
}

void JobCache::drop(Slot slot) {
  Place* place = place_of(slot);
  if (place == nullptr) return;
  const Job gone = std::move(batches_[place->batch].jobs[place->index]);
  release(slot, place, content_bytes(gone));
}

bool JobCache::take(Slot slot, const JobId& id, Job& into) {
  Place* place = place_of(slot);
  if (place == nullptr) return false;
  Job& job = batches_[place->batch].jobs[place->index];
  if (job.id != id) {
    drop(slot);  // The slot was given to another job since: this is a leftover.
    return false;
  }
  const std::uint64_t bytes = content_bytes(job);
  replace(into, std::move(job));
  release(slot, place, bytes);
  return true;
}

}  // namespace bide::engine
