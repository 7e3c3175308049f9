// Typed bodies as JSON, by nlohmann-json (Debian: nlohmann-json3-dev). With asio.h the only public header that needs more
// than the standard library; include it where the types are used.
//
//   struct Resize { std::string file; int width; };
//   NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resize, file, width)
//
//   client.enqueue("resize", Resize{"cat.png", 640});
//   worker.handle<Resize>("resize", [](const Resize& job, bide::Context& context) { ... });

#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "bide/body.h"

namespace bide {

template <class T>
  requires TypedBody<T> && requires(nlohmann::json& json, const T& in) {
    json = in;
    json.template get<T>();
  }
struct BodyCodec<T> {
  static constexpr std::string_view kContentType = "application/json";

  static std::string encode(const T& value) { return nlohmann::json(value).dump(); }
  static T decode(std::string_view body) { return nlohmann::json::parse(body).template get<T>(); }
};

}  // namespace bide
