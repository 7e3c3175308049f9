// says: a handler takes (const bide::Job&, bide::Context&)
#include <bide/bide.h>

void build(bide::Worker& worker) {
  worker.handle("resize", [](int width) { (void)width; });
}
