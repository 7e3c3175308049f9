// What the encoders and decoders of all records have in common.

#pragma once

#include <cstdint>

#include "engine/journal/records.h"

namespace bide::engine::journal {

// A type is written in version 1 unless it says something that only a later version can.
inline constexpr std::uint8_t kFirstVersion = 1;
inline constexpr std::uint8_t kSecondVersion = 2;

Error malformed(const RecordView& view, RecordType type, const char* what);
// kDamaged: it is not of this type. kNewerVersion: than `newest`.
Status check_kind(const RecordView& view, RecordType type, std::uint8_t newest = kFirstVersion);
// The last word of every decoder.
Status complete(const Decoder& in, const RecordView& view, RecordType type);
Encoder& begin(Journal& journal, RecordType type, std::uint8_t version = kFirstVersion);

}  // namespace bide::engine::journal
