// video_pipeline: jobs that wait for one another. A video is fetched, cut into what two encoders need, and published when both are
// done; what each came to is read by the next.

#include <iostream>

#include "bide/bide.h"

using namespace std::chrono_literals;

int main() {
  auto client = bide::Client::open("bide:./video_pipeline.data").value();

  bide::Flow flow;
  const bide::JobId fetch = flow.add("fetch", "cats.mp4");
  const bide::JobId small = flow.add("encode", "480p", {.after = {fetch}});
  const bide::JobId large = flow.add("encode", "1080p", {.after = {fetch}});
  const bide::JobId publish = flow.add("publish", "", {.after = {small, large}});
  flow.start(client).value();  // All of it is durable. `bide flow show ID` draws it.

  bide::Worker worker(client, {.concurrency = 2});
  worker.handle("fetch", [](const bide::Job& job, bide::Context& context) { context.set_result("/tmp/" + job.body); });
  worker.handle("encode", [](const bide::Job& job, bide::Context& context) {
    context.progress(0.5, "half of the frames");  // Shown by `bide job show`.
    context.set_result(context.result_of("fetch").value() + "." + job.body);
  });
  worker.handle("publish", [](const bide::Job& job, bide::Context& context) {
    std::cout << "publishing " << context.result_of(job.after[0]).value() << " and " << context.result_of(job.after[1]).value()
              << std::endl;
  });
  worker.start().value();
  client.wait_for(publish, 1min).value();
}
