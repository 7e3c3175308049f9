#include "engine/finished_ids.h"

#include <algorithm>
#include <limits>

namespace bide::engine {

using platform::OpenMode;

namespace {

// What a place of the table takes, with the room that a table has.
constexpr std::uint64_t kBytesAnId = 12;
constexpr std::size_t kLeastIdsInABlock = 4096;
constexpr std::uint64_t kMostSettledInABlock = 64 << 10;
// Files are dropped whole: an id is remembered for at most so much of the retention longer than it.
constexpr std::int64_t kFilesInARetention = 16;
constexpr std::uint64_t kFilesInMemory = 32;
constexpr std::size_t kMostDamage = 20;
constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

// What cannot be read is tried once more.
Result<std::size_t> read_bytes(platform::File& file, std::uint64_t offset, std::string& into) {
  auto got = file.read(offset, into.data(), into.size());
  return got ? got : file.read(offset, into.data(), into.size());
}

}  // namespace

FinishedIds::FinishedIds(platform::Disk& disk, const std::string& store, Milliseconds retention,
                         std::uint64_t memory_bytes)
    : disk_(disk),
      store_(store),
      directory_(store + "/ids"),
      retention_ms_(retention.count()),
      most_ids_(std::max<std::uint64_t>(memory_bytes / kBytesAnId / 8 * 7, kLeastIdsInABlock)),
      most_token_bytes_(memory_bytes / 8),
      ids_in_a_block_(std::max<std::size_t>(kLeastIdsInABlock, most_ids_ / (IdTable::kMostBlocks / 2))) {}

Status FinishedIds::open(journal::Address from) {
  snapshot_ = from;
  is_anchored_ = from == 0;
  const auto there = disk_.exists(directory_);
  if (!there) return there.error();
  if (!*there) {
    covered_ = from;
    return {};
  }
  const auto names = disk_.list(directory_);
  if (!names) return names.error();
  for (const std::string& name : *names) {  // Sorted, and so are their numbers.
    const auto number = parse_id_file_name(name);
    if (!number) continue;
    if (Status read = read_file(*number, from); !read) return read;
  }
  const bool all_unreadable = is_new_ && unreadable_;
  if (all_unreadable || (last_read_ && covered_ < from && gaps_.empty())) {
    const auto [file, offset] = unreadable_.value_or(std::pair(files_.back().number, files_.back().bytes));
    gaps_.push_back({covered_, last_read_.value_or(kUnknown), file, offset});
  }
  covered_ = std::max(covered_, from);
  if (!is_anchored_) {
    // What was known before the snapshot is nowhere here, so all of it is collected again.
    for (File& file : files_) forget(file);
    covered_ = from;
    to_write_again_.clear();
  }
  return {};
}

Status FinishedIds::read_file(std::uint64_t number, journal::Address from) {
  auto opened = disk_.open(path_of(number), OpenMode::kReadOnly);
  if (!opened) return opened.error();
  const auto size = (*opened)->size();
  if (!size) return size.error();
  last_file_ = number;
  File file{.number = number, .end_block = next_block(), .bytes = *size};
  std::string block;
  for (std::uint64_t offset = 0; offset < *size;) {
    block.resize(std::min<std::uint64_t>(kIdBlockHeaderBytes, *size - offset));
    auto got = read_bytes(**opened, offset, block);
    const auto header = got ? decode_id_block_header(std::string_view(block).substr(0, *got)) : std::nullopt;
    if (!got && got.error().code == ErrorCode::kOverloaded) return got.error();
    bool whole = false;
    if (header && header->version == kIdBlockVersion && header->bytes <= *size - offset) {
      block.resize(header->bytes);
      got = read_bytes(**opened, offset, block);
      if (!got && got.error().code == ErrorCode::kOverloaded) return got.error();
      whole = got && *got == block.size() && is_whole_id_block(block, *header, number, offset);
    }
    if (header && header->version > kIdBlockVersion) {
      return Error{ErrorCode::kNewerVersion, path_of(number) + ": written by a newer bide (ids version " +
                                                 std::to_string(header->version) + "): use that version"};
    }
    if (!whole) {
      // The empty block with which a file begins is synced before anything follows it: without it there was never more.
      const bool never_begun = *size <= kIdBlockAlignment;
      if (!unreadable_ && !never_begun) unreadable_ = {number, offset};
      offset += kIdBlockAlignment;
      continue;
    }
    is_new_ = false;
    const std::int64_t newest = header->newest_ms - header->stepped_ms;
    file.from = std::min(file.from, header->from);
    file.oldest = std::min(file.oldest, newest);
    file.newest = std::max(file.newest, newest);
    const bool is_known = last_read_ && gaps_.empty() && header->from < header->covered && header->covered <= covered_;
    if (header->from < from) {
      is_anchored_ = true;
      if (!is_known) {
        look_for_gap(*header, number);
        take(*header, block, file, offset);
      }
    } else if (is_anchored_ && covered_ >= from && header->from <= covered_ && !is_known) {
      // Behind the snapshot: perhaps not synced. The journal has it too, until the next snapshot.
      take(*header, block, file, offset);
      to_write_again_.push_back({number, offset, header->bytes});
    }
    offset += padded_id_block(header->bytes);
  }
  // One without a whole block is of no use, but proves nothing either: it goes with those before it.
  files_.push_back(file);
  return {};
}

void FinishedIds::look_for_gap(const IdBlockHeader& header, std::uint64_t file) {
  // What was written again later is not missing.
  std::erase_if(gaps_, [&](const Gap& gap) { return gap.begin >= header.from; });
  const bool gap_before = last_read_ ? header.from > covered_ : unreadable_.has_value() && header.from > 0;
  if (gap_before) {
    const auto [at_file, offset] = unreadable_.value_or(std::pair(file, std::uint64_t{0}));
    gaps_.push_back({last_read_ ? covered_ : header.from - 1, last_read_.value_or(kUnknown), at_file, offset});
  }
  unreadable_.reset();
}

void FinishedIds::take(const IdBlockHeader& header, std::string_view block, File& file, std::uint64_t offset) {
  const std::uint64_t number = next_block();
  constexpr std::size_t kAhead = 8;
  for (std::size_t i = 0; i < header.ids; ++i) {
    if (i + kAhead < header.ids) table_.prefetch(id_in_block(block, i + kAhead));
    table_.insert(id_in_block(block, i), number);
  }
  TokenGroups::Groups groups;
  if (decode_token_groups(block, header, groups)) {
    for (const auto& [group, bits] : groups) tokens_.add(group, bits, number);
  }
  file.ids += header.ids;
  ids_ += header.ids;
  covered_ = header.covered;
  stepped_ms_ = covered_stepped_ms_ = header.stepped_ms;
  last_read_ = header.newest_ms - header.stepped_ms;
  if (header.ids == 0 && header.groups == 0) return;
  blocks_.push_back({file.number, offset, header.bytes});
  file.end_block = number + 1;
}

void FinishedIds::report_gap(const Gap& gap) {
  if (damage_.size() >= kMostDamage) return;
  const std::string path = path_of(gap.file);
  damage_.push_back({path, gap.offset,
                     "ids of finished jobs cannot be read at " + path + " offset " + std::to_string(gap.offset) +
                         ": jobs that are enqueued with one of them again will run again; stop the process, then `bide "
                         "store check` says more, `bide store repair` keeps what can be read"});
}

void FinishedIds::start(std::int64_t now_ms) {
  // One of which nothing could be read stays for a while, to be looked at.
  for (File& file : files_) {
    if (file.newest == File().newest) file.newest = now_ms - stepped_ms_;
  }
  is_started_ = true;
  forget_old(now_ms);
  // What is too old is removed, and may come back in part after a loss of power: that is nobody's loss.
  for (const Gap& gap : gaps_) {
    if (gap.since >= latest_ - retention_ms_) report_gap(gap);
  }
}

void FinishedIds::add(const JobId& id, std::uint64_t token, std::int64_t finished_ms, journal::Address end) {
  if (retention_ms_ == 0) return;
  has_added_ = is_started_;
  const std::int64_t time = finished_ms - stepped_ms_;
  if (open_.settled == 0) open_.oldest = open_.newest = time;
  ++open_.settled;
  open_.newest = std::max(open_.newest, time);
  if (token != 0) open_.tokens.add(token);
  if (!id.is_nil()) {
    open_.ids.push_back(id);
    table_.insert(id, open_block());
    ++ids_;
  }
  const bool old = open_.newest - open_.oldest >= retention_ms_ / kFilesInARetention;
  if (open_.ids.size() >= ids_in_a_block_ || open_.settled >= kMostSettledInABlock || old) close_block(end);
}

void FinishedIds::close_block(journal::Address end) {
  if (retention_ms_ == 0) return;
  if (open_.settled == 0) {
    if (!closed_.empty()) {
      closed_.back().end = end;  // Nothing has happened since.
      closed_.back().stepped = stepped_ms_;
      return;
    }
    open_.oldest = open_.newest = latest_;
  }
  open_.end = end;
  open_.stepped = stepped_ms_;
  closed_.push_back(std::exchange(open_, {}));
}

Result<bool> FinishedIds::contains(const JobId& id) {
  std::optional<Error> error;
  const bool found = table_.any_block(id, [&](std::uint64_t block) {
    const auto there = is_in_block(block, id);
    if (!there) error = there.error();
    return !there || *there;
  });
  if (error) return *error;
  return found;
}

Status FinishedIds::look_into(std::uint64_t number, const JobId& wanted) {
  const Block& block = blocks_[static_cast<std::size_t>(number - first_block_)];
  if (looked_into_ == nullptr || looked_into_number_ != block.file) {
    auto opened = disk_.open(path_of(block.file), OpenMode::kReadOnly);
    if (!opened) return opened.error();
    looked_into_ = std::move(*opened);
    looked_into_number_ = block.file;
  }
  cached_ = kNoBlock;
  cached_at_ = 0;
  cached_block_.resize(block.bytes);
  const auto got = read_bytes(*looked_into_, block.offset, cached_block_);
  if (!got) return got.error();
  const auto header = decode_id_block_header(std::string_view(cached_block_).substr(0, *got));
  if (!header || !is_whole_id_block(cached_block_, *header, block.file, block.offset)) {
    return Error{ErrorCode::kDamaged,
                 "whether job " + wanted.to_string() + " is done already cannot be read at " + path_of(block.file) +
                     " offset " + std::to_string(block.offset) +
                     "; `bide store check` says more, `bide store repair` keeps what can be read"};
  }
  cached_ = number;
  return {};
}

Result<bool> FinishedIds::is_in_block(std::uint64_t number, const JobId& id) {
  if (number >= next_block()) {
    const std::size_t index = static_cast<std::size_t>(number - next_block());
    const std::vector<JobId>& ids = index < closed_.size() ? closed_[index].ids : open_.ids;
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  }
  if (number != cached_) {
    if (Status looked = look_into(number, id); !looked) return looked.error();
  }
  // Those that come again mostly come in the same order.
  const std::size_t ids = decode_id_block_header(cached_block_)->ids;
  for (std::size_t i = 0; i < ids; ++i) {
    const std::size_t at = cached_at_ + i < ids ? cached_at_ + i : cached_at_ + i - ids;
    if (id_in_block(cached_block_, at) != id) continue;
    cached_at_ = at;
    return true;
  }
  return false;
}

bool FinishedIds::was_settled(std::uint64_t token) const {
  return open_.tokens.has(token) || tokens_.has(token) ||
         std::any_of(closed_.begin(), closed_.end(), [token](const Unwritten& block) { return block.tokens.has(token); });
}

void FinishedIds::forget_old(std::int64_t now_ms) {
  latest_ = now_ms - stepped_ms_;
  const std::int64_t before = latest_ - retention_ms_;
  for (File& file : files_) {
    if (file.is_forgotten) continue;
    const bool early = file.newest >= before;
    if (early && ids_ <= most_ids_ && open_block() - first_block_ < IdTable::kMostBlocks - 1) break;
    if (early) {
      ids_forgotten_early_ += file.ids;
      short_until_ = file.newest + retention_ms_;
    }
    forget(file);
  }
  // Somebody who only looks, perhaps with a shorter retention than those who work, removes nothing.
  while (has_added_ && !files_.empty() && files_.front().is_forgotten && has_later_anchor()) remove_oldest_file();
  while (tokens_.bytes() > most_token_bytes_) {
    tokens_forgotten_early_ += tokens_.drop_oldest();
  }
  // Those that are not written: too old, or too many and there is no room on the disk for them.
  const auto forget = [this](Unwritten& block) {
    ids_ -= block.ids.size();
    block.ids = {};
    block.tokens = {};
  };
  for (Unwritten& block : closed_) {
    if (block.settled == 0) continue;
    const bool early = block.newest >= before;
    if (early && ids_ <= most_ids_) break;
    if (early) {
      ids_forgotten_early_ += block.ids.size();
      short_until_ = block.newest + retention_ms_;
    }
    forget(block);
  }
  if (open_.settled != 0 && open_.newest < before) forget(open_);
}

void FinishedIds::forget(File& file) {
  file.is_forgotten = true;
  ids_ -= file.ids;
  file.ids = 0;
  while (first_block_ < file.end_block) {
    blocks_.pop_front();
    ++first_block_;
  }
  table_.set_first(first_block_);
  tokens_.drop_before(first_block_);
}

// The next opening learns from a block before the snapshot how the clock was stepped until then. Without one it could not
// compare the times in older files, which may come back after a loss of power.
bool FinishedIds::has_later_anchor() const {
  return std::any_of(files_.begin() + 1, files_.end(), [this](const File& file) { return file.from < snapshot_; });
}

void FinishedIds::remove_oldest_file() {
  const File& file = files_.front();
  if (looked_into_number_ == file.number) looked_into_.reset();
  obsolete_files_.push_back(path_of(file.number));
  files_.pop_front();
}

Status FinishedIds::write(journal::Address synced, bool all) {
  // Until then the journal has everything: an opening to look at something writes nothing.
  if (!has_added_ && !all) return {};
  while (!closed_.empty() && closed_.front().end <= synced) {
    if (Status written = write_block(closed_.front()); !written) return written;
    covered_ = closed_.front().end;
    covered_stepped_ms_ = closed_.front().stepped;
    for (const auto& [group, bits] : closed_.front().tokens.groups()) tokens_.add(group, bits, next_block() - 1);
    closed_.pop_front();
  }
  return {};
}

// With an empty block, so that it can be told how much is missing in front of the next.
Status FinishedIds::begin_file(const Unwritten& block) {
  if (file_ != nullptr) {
    if (Status synced = sync(); !synced) return synced;
    file_.reset();
  }
  if (!directory_there_) {
    if (Status made = disk_.make_directory(directory_); !made) return made;
    if (Status synced = disk_.sync_directory(store_); !synced) return synced;
    directory_there_ = true;
  }
  const std::uint64_t number = last_file_ + 1;
  auto opened = disk_.open(path_of(number), OpenMode::kCreate);
  if (!opened) return opened.error();
  const IdBlockHeader header{.from = covered_,
                             .covered = covered_,
                             .newest_ms = block.newest + covered_stepped_ms_,
                             .stepped_ms = covered_stepped_ms_};
  const std::string bytes = encode_id_block(header, {}, {}, number, 0);
  if (Status written = (*opened)->write(0, bytes); !written) return written;
  if (Status synced = (*opened)->sync(); !synced) return Error{ErrorCode::kIoError, synced.error().message};
  if (Status synced = disk_.sync_directory(directory_); !synced) return synced;
  file_ = std::move(*opened);
  last_file_ = number;
  files_.push_back({.number = number,
                    .end_block = next_block(),
                    .bytes = bytes.size(),
                    .from = covered_,
                    .oldest = block.oldest,
                    .newest = block.newest});
  return {};
}

Status FinishedIds::write_block(const Unwritten& block) {
  const bool full = file_ == nullptr || files_.back().is_forgotten || files_.back().ids >= most_ids_ / kFilesInMemory ||
                    block.newest - files_.back().oldest >= retention_ms_ / kFilesInARetention;
  if (full) {
    if (Status begun = begin_file(block); !begun) return begun;
  }
  File& file = files_.back();
  const IdBlockHeader header{.from = covered_,
                             .covered = block.end,
                             .newest_ms = block.newest + block.stepped,
                             .stepped_ms = block.stepped};
  const std::string bytes = encode_id_block(header, block.ids, block.tokens.groups(), file.number, file.bytes);
  if (Status written = file_->write(file.bytes, bytes); !written) return written;
  blocks_.push_back({file.number, file.bytes, decode_id_block_header(bytes)->bytes});
  unsynced_bytes_ += bytes.size();
  file.bytes += bytes.size();
  file.ids += block.ids.size();
  file.newest = std::max(file.newest, block.newest);
  file.end_block = next_block();
  return {};
}

// If a sync of the process before has failed, another one of the same pages proves nothing.
Status FinishedIds::write_again() {
  for (; !to_write_again_.empty(); to_write_again_.pop_back()) {
    const Block& block = to_write_again_.back();
    const bool is_there = std::any_of(files_.begin(), files_.end(), [&](const File& file) { return file.number == block.file; });
    if (!is_there) continue;
    auto opened = disk_.open(path_of(block.file), OpenMode::kReadWrite);
    if (!opened) return opened.error();
    std::string bytes(block.bytes, '\0');
    const auto got = read_bytes(**opened, block.offset, bytes);
    if (!got) return got.error();
    if (Status written = (*opened)->write(block.offset, bytes); !written) return written;
    if (Status synced = (*opened)->sync(); !synced) return Error{ErrorCode::kIoError, synced.error().message};
  }
  return {};
}

Status FinishedIds::sync() {
  if (Status written = write_again(); !written) return written;
  if (unsynced_bytes_ == 0) return {};
  // Not to be tried again, whatever the reason.
  if (Status synced = file_->sync(); !synced) return Error{ErrorCode::kIoError, synced.error().message};
  unsynced_bytes_ = 0;
  return {};
}

std::vector<std::pair<std::string, std::uint64_t>> FinishedIds::files() const {
  std::vector<std::pair<std::string, std::uint64_t>> files;
  for (const File& file : files_) files.emplace_back(id_file_name(file.number), file.bytes);
  return files;
}

FinishedIds::Use FinishedIds::use() const {
  Use use{.ids = ids_,
          .memory_bytes = table_.bytes() + tokens_.bytes() + blocks_.size() * sizeof(Block),
          .ids_forgotten_early = ids_forgotten_early_,
          .tokens_forgotten_early = tokens_forgotten_early_};
  const auto count = [&use](const Unwritten& block) {
    use.memory_bytes += block.ids.capacity() * sizeof(JobId) + block.tokens.groups().size() * SettledTokens::kGroupBytes;
  };
  count(open_);
  for (const Unwritten& block : closed_) count(block);
  for (const File& file : files_) use.disk_bytes += file.bytes;
  return use;
}

}  // namespace bide::engine
