// The blocks of a snapshot that few stores have, of version 4: rules and groups of queues, what jobs wait for, saved steps and held
// keys. A decoder gives false when the block is not right.

#pragma once

#include <cstdint>
#include <string>

#include "engine/state.h"

namespace bide::engine {

void encode_rules(journal::Encoder& out, const State& state);
bool decode_rules(journal::Decoder& in, State& state);
void encode_groups(journal::Encoder& out, const State& state);
bool decode_groups(journal::Decoder& in, State& state);

// Add those of the job, if it has any.
void encode_steps(std::string& block, const State& state, Slot slot);
void encode_relations(std::string& block, const State& state, Slot slot);
// When the ids of all jobs are known. Relations are decoded twice: first all jobs, then who waits for them.
bool decode_steps(journal::Decoder& in, State& state);
bool decode_relations(journal::Decoder& in, State& state, bool waits);

// A piece of them, behind the key in `cursor`. False: that was all.
bool encode_held_keys(std::string& block, const State& state, std::string& cursor, std::int64_t shift_ms);
bool decode_held_keys(journal::Decoder& in, State& state);

}  // namespace bide::engine
