// compiles
#include <string>

#include <bide/bide.h>
#include <bide/json.h>

struct Resize {
  std::string file;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resize, file)

void build(bide::Client& client, bide::Worker& worker) {
  const bide::Kind<Resize> kind("resize", {.queue = "images"});
  const bide::Kind<std::string> text("text");
  (void)client.enqueue(kind, {"cat.png"});
  (void)client.enqueue(text, "bytes");
  (void)client.enqueue_all(kind, {{"cat.png"}, {"dog.png"}});
  worker.handle(kind, [](const Resize& job, bide::Context& context) { (void)context.enqueue("next", job); });
  worker.handle(text, [](std::string_view body) { (void)body; });
  worker.handle("any", [](const bide::Job&) -> bide::Outcome { return bide::Done{}; });
}
