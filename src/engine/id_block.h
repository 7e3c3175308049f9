// A block of finished ids, as it lies in a file of the folder `ids`. Drawn in docs/formats/ids.md.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job_id.h"
#include "engine/journal/journal.h"
#include "engine/settled_tokens.h"

namespace bide::engine {

inline constexpr std::uint32_t kIdBlockVersion = 1;
inline constexpr std::size_t kIdBlockHeaderBytes = 64;
// Blocks begin at multiples of this, so that those behind a damaged one are found.
inline constexpr std::size_t kIdBlockAlignment = 512;

inline constexpr std::uint64_t padded_id_block(std::uint64_t bytes) {
  return (bytes + kIdBlockAlignment - 1) / kIdBlockAlignment * kIdBlockAlignment;
}

std::string id_file_name(std::uint64_t number);
std::optional<std::uint64_t> parse_id_file_name(std::string_view name);

struct IdBlockHeader {
  std::uint32_t version = kIdBlockVersion;
  std::uint32_t bytes = 0;  // With the header, without what fills it up.
  std::uint64_t checksum = 0;
  // The jobs that finished between these addresses of the journal are in it. Where one block begins after the end of the
  // one before it, something is missing.
  journal::Address from = 0;
  journal::Address covered = 0;
  std::int64_t newest_ms = 0;    // When the last of them finished.
  std::int64_t stepped_ms = 0;  // All steps of the wall clock until then, together.
  std::uint32_t ids = 0;
  std::uint32_t groups = 0;  // Of tokens.
};

// Filled up to a multiple of kIdBlockAlignment.
std::string encode_id_block(const IdBlockHeader& header, const std::vector<JobId>& ids, const TokenGroups::Groups& groups,
                            std::uint64_t file, std::uint64_t offset);
// Empty: no block begins here. Whether it is whole its checksum says.
std::optional<IdBlockHeader> decode_id_block_header(std::string_view bytes);
// `block` is as long as its header says.
bool is_whole_id_block(std::string_view block, const IdBlockHeader& header, std::uint64_t file, std::uint64_t offset);
JobId id_in_block(std::string_view block, std::size_t index);
// False: what is behind the ids makes no sense.
bool decode_token_groups(std::string_view block, const IdBlockHeader& header, TokenGroups::Groups& out);

}  // namespace bide::engine
