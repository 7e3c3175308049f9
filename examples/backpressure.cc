// backpressure: an entry point that answers 429 when the broker takes no more, and a job that waits for room instead.

#include <functional>
#include <future>
#include <iostream>
#include <string>

#include "bide/bide.h"

using namespace std::chrono_literals;

// What any HTTP library has in some form.
struct Response {
  int status = 200;
  std::chrono::seconds retry_after{0};
};
using Entry = std::function<Response()>;

// Middleware for an entry point: it is not even begun while the broker is under pressure, and what it does must be
// refused too, not wait, when the pressure comes meanwhile.
Entry shed_load(bide::Client client, Entry inner) {
  return [client, inner]() -> Response {
    const bide::Pressure now = client.pressure();
    if (now.level != bide::Pressure::Level::kBlocked) return inner();
    // Retry-After has whole seconds.
    return {429, std::chrono::ceil<std::chrono::seconds>(now.retry_after)};
  };
}

int main() {
  // Room for two jobs.
  auto client = bide::Client::open("bide:./backpressure.data?max_jobs=2").value();

  const Entry upload = shed_load(client, [client]() mutable -> Response {
    const auto id = client.enqueue("resize", "cat.png", {.delay = 1h, .pressure = bide::PressurePolicy::fail()});
    if (id) return {202};
    return {id.error().code == bide::ErrorCode::kOverloaded ? 429 : 500, 1s};
  });
  for (int i = 0; i < 3; ++i) {
    const Response response = upload();
    std::cout << response.status << (response.retry_after > 0s ? ", come again later" : "") << std::endl;
  }

  // What has no user who could come again waits; here until a job is cancelled.
  std::promise<bide::Result<bide::JobId>> waited;
  client.enqueue_async("report", "", {.delay = 1h, .pressure = bide::PressurePolicy::wait(1min)},
                       [&](bide::Result<bide::JobId> id) { waited.set_value(std::move(id)); });
  const auto jobs =
      bide::wait<bide::JobPage>([&](auto done) { client.inspector().list({}, "", 1, std::move(done)); }).value();
  client.inspector().cancel({jobs.jobs.at(0).job.id}, {}, [](const auto&) {});
  std::cout << (waited.get_future().get() ? "taken after a wait" : "refused") << std::endl;
}
