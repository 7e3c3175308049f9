// BodyCodec: how a type of yours becomes the body of a job, and comes back. <bide/json.h> has one for every type that
// nlohmann-json knows; another encoding is a specialisation of yours:
//
//   template <>
//   struct bide::BodyCodec<Resize> {
//     static constexpr std::string_view kContentType = "application/x-protobuf";
//     static std::string encode(const Resize& value);
//     static Resize decode(std::string_view body);  // Throws std::exception when the body is not one.
//   };

#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace bide {

template <class T>
struct BodyCodec;

template <class T>
concept HasBodyCodec = requires(const T& value, std::string_view body) {
  { BodyCodec<T>::encode(value) } -> std::convertible_to<std::string>;
  { BodyCodec<T>::decode(body) } -> std::convertible_to<T>;
  { BodyCodec<T>::kContentType } -> std::convertible_to<std::string_view>;
};

// The one place that says what is missing.
template <class T>
constexpr void require_body_codec() {
  static_assert(HasBodyCodec<T>,
                "this type cannot be the body of a job yet: include <bide/json.h> and give it to_json and from_json "
                "(NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Type, field, ...)), or specialise bide::BodyCodec<Type>");
}

// Bytes are themselves; everything else needs a codec.
template <class T>
concept TypedBody = !std::convertible_to<const T&, std::string_view>;

}  // namespace bide
