// Producers: threads that enqueue jobs as fast as the broker confirms them, with a bounded number under way.

#pragma once

#include <cstdint>
#include <functional>

#include "bide/broker.h"
#include "bide/result.h"

namespace bide::bench {

struct ProducerOptions {
  std::uint64_t jobs = 0;
  int threads = 2;
  std::size_t batch = 256;  // Jobs a call.
  int window = 16;          // Calls under way, for each thread.
};

// Blocks until every job is confirmed. `make` is called from all threads with the number of the job.
Status produce(Broker& broker, const ProducerOptions& options, const std::function<Job(std::uint64_t)>& make);

// A job of the benchmark: 200 bytes that do not repeat themselves from one to the next.
Job make_bench_job(std::uint64_t number, const char* queue);

// How long it takes to enqueue one job, into the queue `alone`.
Result<double> single_enqueue_us(Broker& broker, std::uint64_t number);

// Jobs that are due at a random moment of the day that begins in an hour, in the queue `later`. Durable when it returns.
Status load_delayed(Broker& broker, std::uint64_t jobs);

}  // namespace bide::bench
