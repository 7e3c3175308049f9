// A job whose body is a type: typed DIRECTORY.

#include <bide/bide.h>
#include <bide/json.h>

#include <iostream>
#include <string>

struct Greeting {
  std::string name;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Greeting, name)

int main(int, char** arguments) {
  auto client = bide::Client::open("bide:" + std::string(arguments[1])).value();
  client.enqueue("greet", Greeting{"world"}).value();

  bide::Worker worker(client);
  worker.handle<Greeting>("greet", [&worker](const Greeting& greeting) {
    std::cout << "hello, " << greeting.name << std::endl;
    worker.stop();
  });
  return worker.run();
}
