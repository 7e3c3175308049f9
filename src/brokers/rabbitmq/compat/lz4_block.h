// One block of LZ4, unpacked. A block is a row of sequences, each of literal bytes and a copy of what came before.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace bide::brokers::rabbitmq::compat {

// Nothing when the block is damaged or does not come to exactly `size` bytes. Takes no more memory than that.
std::optional<std::string> unpack_lz4_block(std::string_view packed, std::size_t size);

}  // namespace bide::brokers::rabbitmq::compat
