// The primitive fields of the on-disk format are those of core.

#pragma once

#include "core/encoding.h"

namespace bide::engine::journal {

using core::Decoder;
using core::Encoder;
using core::load_little_endian;
using core::store_little_endian;

}  // namespace bide::engine::journal
