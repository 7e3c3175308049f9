// says: give it to_json and from_json
#include <bide/bide.h>
#include <bide/json.h>

struct Resize {
  int width = 0;
};

void build(bide::Worker& worker) {
  worker.handle<Resize>("resize", [](const Resize&) {});
}
