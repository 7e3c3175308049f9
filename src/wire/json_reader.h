// JsonReader: JSON text, read from front to back without a tree: each call takes the next value or says what is wrong
// with it. Strings without escapes and raw values are slices of the text.
//
//   JsonReader in(R"({"kind":"resize","body":{"width":640}})");
//   in.object();
//   while (const auto name = in.field()) {
//     if (*name == "kind") kind = in.string();
//     else if (*name == "body") body = in.raw();   // {"width":640}, byte for byte
//     else in.raw();
//   }
//   in.end();
//   if (!in.ok()) fail(in.fault());
//
// The first fault stays: afterwards every call gives nothing and every loop ends, so it is enough to ask at the end.
// Strict: RFC 8259, valid UTF-8, no byte order mark, no lone surrogates, no deeper than it was told.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bide::wire {

// Of what others send us; what we wrap around a body must fit into the second one.
inline constexpr int kDeepestRequest = 64;
inline constexpr int kDeepestAnswer = 96;

struct JsonFault {
  std::string_view code = {};  // invalid_json, json_too_deep, empty_body, wrong_type, expected_object
  std::size_t offset = 0;      // Of the byte where it is.
  std::string text = {};       // What is wrong: "expected a comma or '}'".
};

class JsonReader {
 public:
  enum class Type : std::uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject, kNothing };

  explicit JsonReader(std::string_view text, int deepest = kDeepestRequest) : text_(text), deepest_(deepest) {}

  // Of the value that comes next; kNothing after a fault or where no value begins.
  Type type();

  // Goes into an object; then field() gives the name of each value in turn, and nothing at the end of the object. The
  // value of a field must be taken before the next is asked for. The name lives as long as the text, or until the next
  // name or string with escapes is read.
  bool object();
  std::optional<std::string_view> field();

  // Goes into an array; then element() is true as long as there is another value to take.
  bool array();
  bool element();

  // Of the wrong type: fault wrong_type, and nothing is taken.
  std::string_view string();  // Without its escapes; lives like a name.
  std::string_view number();  // As it is written.
  bool boolean();
  void null();
  std::string_view raw();  // Any value, whole, checked and left as it is.

  // Nothing but white space may be left.
  void end();

  bool ok() const { return fault_.code.empty(); }
  const JsonFault& fault() const { return fault_; }
  void fail(std::string_view code, std::string text);  // At the place where reading is.

  // To read a value a second time. Also takes back a fault, so that what is wrong with one item spares the others.
  struct Place {
    std::size_t at = 0;
    int depth = 0;
    bool first = false;
  };
  Place place() const { return {at_, depth_, first_}; }
  void go_back(Place place);
  std::string_view since(Place place) const { return text_.substr(place.at, at_ - place.at); }
  std::size_t offset() const { return at_; }

 private:
  bool fail_syntax(std::string_view text);
  bool expect(Type type, std::string_view what);
  void skip_space();
  bool enter();
  bool skip_value();
  bool skip_string();
  bool skip_number();
  bool skip_word(std::string_view word);
  bool skip_escape();
  bool read_string(std::string_view& out);
  static void unescape(std::string_view inside, std::string& out);

  std::string_view text_;
  int deepest_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool first_ = false;  // Just gone into an object or array: no comma yet.
  std::string unescaped_;
  JsonFault fault_;
};

// The whole text is one JSON value, with nothing around it and not deeper than this: it can be put into a document as
// it is, and comes out of it the same.
bool is_json_value(std::string_view text, int deepest = kDeepestRequest - 4);

}  // namespace bide::wire
