// says: takes (const Type&, bide::Context&) or (const Type&)
#include <string>

#include <bide/bide.h>
#include <bide/json.h>

struct Resize {
  std::string file;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resize, file)

void build(bide::Worker& worker) {
  worker.handle<Resize>("resize", [](const Resize& job, int attempt) { (void)job, (void)attempt; });
}
