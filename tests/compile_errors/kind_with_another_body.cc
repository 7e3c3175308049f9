// says: could not convert|no matching function|no matching member function
#include <string>

#include <bide/bide.h>
#include <bide/json.h>

struct Resize {
  std::string file;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resize, file)

void build(bide::Client& client, const bide::Kind<Resize>& kind) { (void)client.enqueue(kind, 7); }
