// says: include <bide/json.h>
#include <bide/bide.h>

struct Resize {
  int width = 0;
};

void build(bide::Client& client) { (void)client.enqueue("resize", Resize{640}); }
