// says: give a result with context.set_result(...)
#include <string>

#include <bide/bide.h>

void build(bide::Worker& worker) {
  worker.handle("resize", [](const bide::Job& job) { return std::string(job.body); });
}
