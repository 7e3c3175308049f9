#include "support/paged_content.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace bide::support {
namespace {

constexpr std::uint64_t pages_for(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

PagePointer page_at(const std::vector<PagePointer>& pages, std::uint64_t index) {
  return index < pages.size() ? pages[index] : nullptr;
}

PagePointer copy_of(const PagePointer& page, std::uint64_t owner) {
  auto copy = page ? std::make_shared<Page>(*page) : std::make_shared<Page>();
  copy->owner = owner;
  return copy;
}

std::size_t read_pages(const std::vector<PagePointer>& pages, std::uint64_t file_size, std::uint64_t offset, char* into,
                       std::size_t size) {
  if (offset >= file_size) return 0;
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, file_size - offset));
  for (std::size_t done = 0; done < size;) {
    const std::uint64_t index = (offset + done) / kPageBytes;
    const std::size_t within = (offset + done) % kPageBytes;
    const std::size_t part = std::min(size - done, kPageBytes - within);
    if (const Page* page = index < pages.size() ? pages[index].get() : nullptr) {
      std::memcpy(into + done, page->bytes.data() + within, part);
    } else {
      std::memset(into + done, 0, part);
    }
    done += part;
  }
  return size;
}

// Bytes after the end of a file are zeros, so that growing it later shows nothing else.
void clear_tail(std::vector<PagePointer>& pages, std::uint64_t size) {
  const std::size_t within = size % kPageBytes;
  const std::uint64_t index = size / kPageBytes;
  if (within == 0 || index >= pages.size() || !pages[index]) return;
  const auto& bytes = pages[index]->bytes;
  if (std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(within), bytes.end(), [](char c) { return c == 0; })) {
    return;
  }
  pages[index] = copy_of(pages[index], 0);
  std::fill(pages[index]->bytes.begin() + static_cast<std::ptrdiff_t>(within), pages[index]->bytes.end(), '\0');
}

// Each sector is from one or the other: the beginning, the end, or any subset has been written.
PagePointer torn_between(const PagePointer& older, const PagePointer& newer, SeededRandom& random) {
  constexpr unsigned kSectors = kPageBytes / kSectorBytes;
  const auto cut = 1 + random.next_below(kSectors - 1);
  const auto style = random.next_below(3);
  const auto subset = random.next();
  auto torn = copy_of(older, 0);
  for (unsigned sector = 0; sector < kSectors; ++sector) {
    const bool from_newer = style == 0 ? sector < cut : style == 1 ? sector >= cut : (subset >> sector & 1) != 0;
    if (!from_newer) continue;
    char* into = torn->bytes.data() + sector * kSectorBytes;
    if (newer) {
      std::memcpy(into, newer->bytes.data() + sector * kSectorBytes, kSectorBytes);
    } else {
      std::memset(into, 0, kSectorBytes);
    }
  }
  return torn;
}

}  // namespace

std::uint64_t Token::fresh() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool Space::take(std::uint64_t pages) {
  const std::uint64_t bytes = pages * kPageBytes;
  if (used_bytes > capacity_bytes || capacity_bytes - used_bytes < bytes) return false;
  used_bytes += bytes;
  return true;
}

void RecycledPages::add(PagePointer page) {
  if (!page) return;
  if (pages_.size() < kKept) pages_.resize(next_ + 1);
  pages_[next_] = std::move(page);
  next_ = (next_ + 1) % kKept;
}

PagePointer RecycledPages::pick(SeededRandom& random) const {
  if (!pages_.empty() && random.chance(0.75)) return pages_[random.next_below(pages_.size())];
  auto noise = std::make_shared<Page>();
  for (std::size_t at = 0; at < kPageBytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(noise->bytes.data() + at, &word, sizeof word);
  }
  return noise;
}

CrashOdds CrashOdds::draw(SeededRandom& random) {
  static constexpr double kKeptOdds[] = {0, 0.1, 0.5, 0.5, 0.9, 1};
  static constexpr double kTornOdds[] = {0, 0.1, 0.3, 0.8};
  const double kept = kKeptOdds[random.next_below(std::size(kKeptOdds))];
  const double torn = kTornOdds[random.next_below(std::size(kTornOdds))];
  return {.kept = kept, .torn = torn, .stale_growth = random.chance(0.5)};
}

char* PagedContent::writable(std::uint64_t index, bool whole, SeededRandom& random) {
  if (current_.size() <= index) current_.resize(index + 1);
  PagePointer& page = current_[index];
  const auto [dirty, first] = dirty_.try_emplace(index);
  bool shared = !page || page->owner != token_.value();
  if (!first && random.next_below(8) == 0) {
    dirty->second = {.between = page, .has_between = true};
    shared = true;
  }
  if (shared) page = copy_of(whole ? nullptr : page, token_.value());
  return page->bytes.data();
}

std::size_t PagedContent::write(std::uint64_t offset, std::string_view bytes, Space& space, SeededRandom& random) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::uint64_t index = (offset + done) / kPageBytes;
    const std::size_t within = (offset + done) % kPageBytes;
    const std::size_t part = std::min(bytes.size() - done, kPageBytes - within);
    if (allocated_.size() <= index) allocated_.resize(index + 1);
    if (!allocated_[index]) {
      if (!space.take(1)) break;
      allocated_[index] = true;
      allocated_pages_ += 1;
      allocation_dirty_ = true;
    }
    std::memcpy(writable(index, part == kPageBytes, random) + within, bytes.data() + done, part);
    done += part;
    size_ = std::max(size_, offset + done);
  }
  // Also after a failed sync: the inode is written as a whole with the next change.
  if (done > 0 && size_ != durable_size_) size_dirty_ = true;
  return done;
}

std::size_t PagedContent::read(std::uint64_t offset, char* into, std::size_t size) const {
  return read_pages(current_, size_, offset, into, size);
}

std::size_t PagedContent::read_durable(std::uint64_t offset, char* into, std::size_t size) const {
  return read_pages(durable_, durable_size_, offset, into, size);
}

void PagedContent::truncate(std::uint64_t size, Space& space, RecycledPages& recycled) {
  if (size < size_) {
    const std::uint64_t kept = pages_for(size);
    for (std::uint64_t index = kept; index < std::max(current_.size(), durable_.size()); ++index) {
      recycled.add(page_at(current_, index));
      dirty_.try_emplace(index);
    }
    if (current_.size() > kept) current_.resize(kept);
    const PagePointer last = page_at(current_, size / kPageBytes);
    clear_tail(current_, size);
    if (page_at(current_, size / kPageBytes) != last) dirty_.try_emplace(size / kPageBytes);
  }
  const std::uint64_t before = allocated_pages_;
  drop_allocation_beyond(pages_for(size));
  space.give(before - allocated_pages_);
  if (size != size_) size_dirty_ = true;
  size_ = size;
  lowest_size_ = std::min(lowest_size_, size);
}

void PagedContent::drop_allocation_beyond(std::uint64_t page) {
  if (allocated_.size() <= page) return;
  allocated_pages_ -= static_cast<std::uint64_t>(
      std::count(allocated_.begin() + static_cast<std::ptrdiff_t>(page), allocated_.end(), true));
  allocated_.resize(page);
  allocation_dirty_ = true;
}

bool PagedContent::allocate(std::uint64_t offset, std::uint64_t size, Space& space) {
  const std::uint64_t end = pages_for(offset + size);
  if (allocated_.size() < end) allocated_.resize(end);
  const auto first = allocated_.begin() + static_cast<std::ptrdiff_t>(offset / kPageBytes);
  const auto last = allocated_.begin() + static_cast<std::ptrdiff_t>(end);
  const auto missing = static_cast<std::uint64_t>(std::count(first, last, false));
  if (!space.take(missing)) return false;
  std::fill(first, last, true);
  allocated_pages_ += missing;
  allocation_dirty_ = allocation_dirty_ || missing > 0;
  return true;
}

void PagedContent::sync() {
  if (durable_.size() < current_.size()) durable_.resize(current_.size());
  for (const auto& [index, dirty] : dirty_) {
    if (index < durable_.size()) durable_[index] = page_at(current_, index);
  }
  dirty_.clear();
  if (size_dirty_) {
    durable_size_ = size_;
    durable_.resize(std::min<std::uint64_t>(durable_.size(), pages_for(size_)));
  }
  if (allocation_dirty_) durable_allocated_ = allocated_;
  lowest_size_ = size_;
  size_dirty_ = allocation_dirty_ = false;
  token_.renew();
}

void PagedContent::fail_sync(SeededRandom& random) {
  if (durable_.size() < current_.size()) durable_.resize(current_.size());
  for (const auto& [index, dirty] : dirty_) {
    if (random.chance(0.5) && index < current_.size()) durable_[index] = current_[index];
  }
  dirty_.clear();
  if (size_dirty_ && random.chance(0.5)) durable_size_ = size_;
  lowest_size_ = size_;
  size_dirty_ = false;
  diverged_ = true;
  token_.renew();
}

void PagedContent::take_durable_view() {
  size_ = lowest_size_ = durable_size_;
  if (durable_.size() > pages_for(size_)) durable_.resize(pages_for(size_));
  clear_tail(durable_, size_);
  current_ = durable_;
  dirty_.clear();
  allocated_ = durable_allocated_;
  if (allocated_.size() < current_.size()) allocated_.resize(current_.size());
  for (std::size_t index = 0; index < current_.size(); ++index) {
    if (current_[index]) allocated_[index] = true;
  }
  durable_allocated_ = allocated_;
  allocated_pages_ = static_cast<std::uint64_t>(std::count(allocated_.begin(), allocated_.end(), true));
  size_dirty_ = diverged_ = allocation_dirty_ = false;
  token_.renew();
}

void PagedContent::lose_unsynced() { take_durable_view(); }

void PagedContent::crash(const CrashOdds& odds, SeededRandom& random, const RecycledPages& recycled) {
  const std::uint64_t new_size = size_after_crash(odds, random);
  for (const auto& [index, dirty] : dirty_) {
    if (index >= pages_for(new_size)) break;
    auto page = page_after_crash(index, dirty, new_size, odds, random, recycled);
    if (durable_.size() <= index) durable_.resize(index + 1);
    durable_[index] = std::move(page);
  }
  durable_size_ = new_size;
  take_durable_view();
}

std::uint64_t PagedContent::size_after_crash(const CrashOdds& odds, SeededRandom& random) const {
  if (!size_dirty_) return durable_size_;
  if (random.chance(odds.kept)) {
    const bool part = size_ > durable_size_ && random.chance(0.25);
    return part ? durable_size_ + random.next_below(size_ - durable_size_) : size_;
  }
  return lowest_size_ < durable_size_ && random.chance(0.25) ? lowest_size_ : durable_size_;
}

PagePointer PagedContent::page_after_crash(std::uint64_t index, const Dirty& dirty, std::uint64_t new_size,
                                           const CrashOdds& odds, SeededRandom& random,
                                           const RecycledPages& recycled) const {
  PagePointer older = page_at(durable_, index);
  PagePointer newer = page_at(current_, index);
  // The cut itself was lost, and with it the freeing of what lay behind it.
  if (!newer && new_size == durable_size_ && pages_for(size_) <= index) return older;
  if (!older && index >= pages_for(durable_size_) && odds.stale_growth && random.chance(0.5)) {
    older = recycled.pick(random);
  }
  if (dirty.has_between && random.chance(0.35)) newer = dirty.between;
  if (random.chance(odds.torn)) return torn_between(older, newer, random);
  return random.chance(odds.kept) ? newer : older;
}

void PagedContent::overwrite(std::uint64_t offset, std::string_view bytes) {
  if (offset + bytes.size() > std::max(size_, durable_size_)) cut(offset + bytes.size());
  for (std::size_t done = 0; done < bytes.size();) {
    const std::uint64_t index = (offset + done) / kPageBytes;
    const std::size_t within = (offset + done) % kPageBytes;
    const std::size_t part = std::min(bytes.size() - done, kPageBytes - within);
    for (Pages* pages : {&current_, &durable_}) {
      if (pages->size() <= index) pages->resize(index + 1);
      (*pages)[index] = copy_of((*pages)[index], 0);
      std::memcpy((*pages)[index]->bytes.data() + within, bytes.data() + done, part);
    }
    if (allocated_.size() <= index) allocated_.resize(index + 1);
    if (!allocated_[index]) allocated_pages_ += 1;
    allocated_[index] = true;
    done += part;
  }
  allocation_dirty_ = true;
}

void PagedContent::flip_bit(std::uint64_t offset, unsigned bit) {
  const std::uint64_t index = offset / kPageBytes;
  for (Pages* pages : {&current_, &durable_}) {
    if (pages->size() <= index) continue;
    (*pages)[index] = copy_of((*pages)[index], 0);
    char& byte = (*pages)[index]->bytes[offset % kPageBytes];
    byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1u << bit));
  }
}

void PagedContent::cut(std::uint64_t size) {
  const std::uint64_t kept = pages_for(size);
  for (Pages* pages : {&current_, &durable_}) {
    if (pages->size() > kept) pages->resize(kept);
    clear_tail(*pages, size);
  }
  dirty_.erase(dirty_.lower_bound(kept), dirty_.end());
  drop_allocation_beyond(kept);
  size_ = durable_size_ = lowest_size_ = size;
  size_dirty_ = false;
}

void PagedContent::recycle_into(RecycledPages& recycled) const {
  const auto count = std::min<std::size_t>(current_.size(), 32);
  for (std::size_t index = 0; index < count; ++index) recycled.add(current_[index]);
}

std::uint64_t PagedContent::fingerprint() const {
  static constexpr std::array<char, kPageBytes> kZeros{};
  std::uint64_t hash = durable_size_ + 0x9e3779b97f4a7c15;
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  };
  std::array<char, kPageBytes> last;
  for (std::uint64_t index = 0; index < pages_for(durable_size_); ++index) {
    const PagePointer page = page_at(durable_, index);
    const auto* bytes = page ? &page->bytes : &kZeros;
    if (const std::uint64_t rest = durable_size_ - index * kPageBytes; rest < kPageBytes) {
      last = *bytes;
      std::fill(last.begin() + static_cast<std::ptrdiff_t>(rest), last.end(), '\0');
      bytes = &last;
    }
    if (std::memcmp(bytes->data(), kZeros.data(), kPageBytes) == 0) {
      mix(index);
      continue;
    }
    for (std::size_t at = 0; at < kPageBytes; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes->data() + at, sizeof word);
      mix(word);
    }
  }
  return hash;
}

}  // namespace bide::support
