// kinds: what is the same for all jobs of a kind, declared once for those who enqueue and those who run them; and results by type.

#include <iostream>

#include "bide/bide.h"
#include "bide/json.h"

using namespace std::chrono_literals;

struct Resize {
  std::string file;
  int width = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resize, file, width)

struct Picture {
  std::string file;
  int bytes = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Picture, file, bytes)

// In a header that client and worker share.
inline const bide::Kind<Resize> kResize("resize", {.queue = "images", .time_limit = 5s, .retry = bide::RetryPolicy::none()});

int main() {
  auto client = bide::Client::open("bide:./kinds.data").value();
  // Around every enqueue: headers that everybody wants, or a word against it.
  client.use([](bide::Job& job) -> bide::Status {
    if (job.body.size() > 1000) return bide::Error{bide::ErrorCode::kInvalidArgument, "put large pictures elsewhere"};
    job.headers.emplace_back("tenant", "acme");
    return {};
  });

  bide::Worker worker(client);
  worker.handle(kResize, [](const Resize& job, bide::Context& context) {  // From the queue `images`, too.
    context.set_result(Picture{job.file, job.width * job.width});
  });
  worker.start().value();

  for (const auto& id : client.enqueue_all(kResize, {{"cat.png", 640}, {"dog.png", 64}})) {
    const Picture picture = client.wait_for<Picture>(id.value(), 10s).value();
    std::cout << picture.file << ": " << picture.bytes << " bytes" << std::endl;
  }
  std::cout << client.enqueue(kResize, {std::string(2000, 'x'), 1}).error().message << std::endl;
}
