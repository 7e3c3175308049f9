// PagedContent: the bytes of one simulated file twice over: as the process sees them, and as they lie on the medium.
//
// Pages are shared between the two views, and between copies of the whole, until one of them is written to. A page that
// was written and not synced is dirty: at a power loss it is dropped, kept, torn between the two, or as it was at some
// moment in between, because the kernel may write back a dirty page whenever it likes.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "support/seeded_random.h"

namespace bide::support {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kSectorBytes = 512;
inline constexpr std::uint64_t kMaximumFileBytes = 1ull << 36;

// A number that no other token has, not even a copy's: it marks what may be changed in place because nobody shares it.
class Token {
 public:
  Token() : value_(fresh()) {}
  Token(const Token&) : value_(fresh()) {}
  Token& operator=(const Token&) {
    value_ = fresh();
    return *this;
  }
  std::uint64_t value() const { return value_; }
  void renew() { value_ = fresh(); }

 private:
  static std::uint64_t fresh();
  std::uint64_t value_;
};

struct Page {
  std::uint64_t owner = 0;
  std::array<char, kPageBytes> bytes{};
};
using PagePointer = std::shared_ptr<Page>;  // Null: zeros.

// What is left of the disk's capacity. Unlimited to begin with.
struct Space {
  std::uint64_t capacity_bytes = UINT64_MAX;
  std::uint64_t used_bytes = 0;
  bool take(std::uint64_t pages);
  void give(std::uint64_t pages) { used_bytes -= pages * kPageBytes; }
};

// Pages of files that are gone: what a file may find in space it was given and never wrote to.
class RecycledPages {
 public:
  void add(PagePointer page);
  PagePointer pick(SeededRandom& random) const;  // One of them, or noise.

 private:
  static constexpr std::size_t kKept = 64;
  std::vector<PagePointer> pages_;
  std::size_t next_ = 0;
};

// How a power loss treats what was not synced. One is drawn for each crash, so that all or nothing comes up as well as
// every mixture.
struct CrashOdds {
  double kept = 0.5;
  double torn = 0.25;
  bool stale_growth = true;  // Room that was added and not written back may hold old pages instead of zeros.
  static CrashOdds draw(SeededRandom& random);
};

class PagedContent {
 public:
  // How many of the bytes were written: fewer when the space ran out.
  std::size_t write(std::uint64_t offset, std::string_view bytes, Space& space, SeededRandom& random);
  std::size_t read(std::uint64_t offset, char* into, std::size_t size) const;
  void truncate(std::uint64_t size, Space& space, RecycledPages& recycled);
  bool allocate(std::uint64_t offset, std::uint64_t size, Space& space);  // All of it, or nothing.
  std::uint64_t size() const { return size_; }

  void sync();
  // Some dirty pages reach the medium, some do not; all are clean afterwards, so that the next sync leaves them out.
  void fail_sync(SeededRandom& random);

  // Nothing would change if the power went now.
  bool settled() const { return dirty_.empty() && !size_dirty_ && !diverged_ && !allocation_dirty_; }
  void lose_unsynced();
  void crash(const CrashOdds& odds, SeededRandom& random, const RecycledPages& recycled);

  // Below are the test's own hands: they change the medium and the view alike.
  void overwrite(std::uint64_t offset, std::string_view bytes);
  void flip_bit(std::uint64_t offset, unsigned bit);
  void cut(std::uint64_t size);

  std::size_t read_durable(std::uint64_t offset, char* into, std::size_t size) const;
  std::uint64_t durable_size() const { return durable_size_; }
  std::uint64_t allocated_pages() const { return allocated_pages_; }
  void recycle_into(RecycledPages& recycled) const;
  std::uint64_t fingerprint() const;  // Of what lies on the medium.

 private:
  using Pages = std::vector<PagePointer>;
  struct Dirty {
    PagePointer between;  // An older content that was never synced, but may have been written back.
    bool has_between = false;
  };

  char* writable(std::uint64_t index, bool whole, SeededRandom& random);
  void take_durable_view();
  void drop_allocation_beyond(std::uint64_t page);
  std::uint64_t size_after_crash(const CrashOdds& odds, SeededRandom& random) const;
  PagePointer page_after_crash(std::uint64_t index, const Dirty& dirty, std::uint64_t new_size, const CrashOdds& odds,
                               SeededRandom& random, const RecycledPages& recycled) const;

  Token token_;  // Renewed whenever the pages written so far come to be shared.
  Pages current_;
  Pages durable_;
  std::map<std::uint64_t, Dirty> dirty_;
  std::uint64_t size_ = 0;
  std::uint64_t durable_size_ = 0;
  std::uint64_t lowest_size_ = 0;  // Since the last sync.
  bool size_dirty_ = false;
  bool diverged_ = false;  // A failed sync has left clean pages that are not on the medium.
  std::vector<bool> allocated_;
  std::vector<bool> durable_allocated_;
  std::uint64_t allocated_pages_ = 0;
  bool allocation_dirty_ = false;
};

}  // namespace bide::support
