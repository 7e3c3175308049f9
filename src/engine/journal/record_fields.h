// The fields that several records share, or that are made of several fields themselves. Drawn in
// docs/formats/journal.md.
//
// A get_ function that returns text says with it what is wrong, nothing when all is well. That the bytes were enough is
// for the caller to ask the decoder, once, at the end.

#pragma once

#include <cstdint>

#include "bide/job.h"
#include "engine/journal/records.h"

namespace bide::engine::journal {

// A field that has the value it has here is not written.
const Job& default_job();

inline Time to_time(std::int64_t ms) { return Time(Milliseconds(ms)); }
inline std::int64_t to_ms(Time time) { return time.time_since_epoch().count(); }

// A time near another one: the difference, with its sign in the lowest bit. Any two 64-bit times survive the trip.
void put_time(Encoder& out, std::int64_t time_ms, std::int64_t near_ms);
std::int64_t get_time(Decoder& in, std::int64_t near_ms);

// False: it does not fit.
bool get_u32(Decoder& in, std::uint32_t& out);
bool get_duration(Decoder& in, Milliseconds& out);

bool is_empty(const Past& past);
void put_past(Encoder& out, const Past& past);
const char* get_past(Decoder& in, Past& out);
const char* get_counts(Decoder& in, AttemptCounts& out);  // The front of a past.

void put_retry(Encoder& out, const RetryPolicy& policy);
const char* get_retry(Decoder& in, RetryPolicy& out);

// A job that is not accepted yet, without due time, expiry and on_conflict: the payload of an accepted record.
void put_job(Encoder& out, const Job& job);
const char* get_job(Decoder& in, Job& out);

void put_binding(Encoder& out, const Binding& binding);
const char* get_binding(Decoder& in, Binding& out);

void put_rules(Encoder& out, const QueueRules& rules);
const char* get_rules(Decoder& in, QueueRules& out);

}  // namespace bide::engine::journal
