#include "server/json_schema.h"

namespace bide::server_tests {

namespace json = boost::json;

namespace {

std::string text_of(const json::value& value) { return json::value_to<std::string>(value); }

bool is_of(const json::value& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  return type == "number" && value.is_number();
}

}  // namespace

JsonSchema::JsonSchema(const json::value& document) : schemas_(document.at("components").at("schemas").as_object()) {}

std::string JsonSchema::check(const Value& value, const Value& schema, const std::string& at) const {
  for (const auto& [keyword, rule] : schema.as_object()) {
    std::string wrong = check_keyword(value, schema, std::string(keyword), rule, at);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string JsonSchema::check_keyword(const Value& value, const Value& schema, const std::string& keyword,
                                      const Value& rule, const std::string& at) const {
  static const std::set<std::string> notes = {"description", "format",  "default", "examples", "pattern", "maxLength",
                                              "minLength",   "minimum", "maximum", "minItems", "maxItems"};
  if (notes.count(keyword) != 0) return "";
  if (keyword == "$ref") {
    const Value* const found = find(rule);
    return found == nullptr ? at + ": there is no " + text_of(rule) : check(value, *found, at);
  }
  if (keyword == "type") return check_type(value, rule, at);
  if (keyword == "enum") {
    for (const Value& each : rule.as_array()) {
      if (each == value) return "";
    }
    return at + " is " + json::serialize(value) + ", which is not one of " + json::serialize(rule);
  }
  if (keyword == "anyOf") return check_alternatives(value, rule, at);
  if (keyword == "allOf") {
    for (const Value& each : rule.as_array()) {
      const std::string wrong = check(value, each, at);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
  if (keyword == "required") {
    for (const Value& name : rule.as_array()) {
      if (value.is_object() && value.as_object().if_contains(name.as_string()) == nullptr)
        return at + " has no " + text_of(name);
    }
    return "";
  }
  if (keyword == "properties") return check_properties(value, rule, at);
  if (keyword == "additionalProperties" || keyword == "unevaluatedProperties") {
    std::set<std::string> known;
    collect_names(schema, keyword == "unevaluatedProperties", known);
    return check_others(value, known, rule, at);
  }
  if (keyword == "items") {
    if (!value.is_array()) return "";
    for (const Value& each : value.as_array()) {
      const std::string wrong = check(each, rule, at + "[]");
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
  return at + ": the validator does not know " + keyword;
}

std::string JsonSchema::check_type(const Value& value, const Value& rule, const std::string& at) const {
  if (rule.is_string()) return is_of(value, text_of(rule)) ? "" : at + " is not " + text_of(rule);
  for (const Value& type : rule.as_array()) {
    if (is_of(value, text_of(type))) return "";
  }
  return at + " has the wrong type";
}

std::string JsonSchema::check_alternatives(const Value& value, const Value& rule, const std::string& at) const {
  std::string all;
  for (const Value& each : rule.as_array()) {
    const std::string wrong = check(value, each, at);
    if (wrong.empty()) return "";
    all += "; " + wrong;
  }
  return at + " is none of those allowed" + all;
}

std::string JsonSchema::check_properties(const Value& value, const Value& rule, const std::string& at) const {
  if (!value.is_object()) return "";
  for (const auto& [name, property] : rule.as_object()) {
    const Value* const found = value.as_object().if_contains(name);
    if (found == nullptr) continue;
    const std::string wrong = check(*found, property, at + "." + std::string(name));
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string JsonSchema::check_others(const Value& value, const std::set<std::string>& known, const Value& rule,
                                     const std::string& at) const {
  if (!value.is_object()) return "";
  for (const auto& [name, each] : value.as_object()) {
    if (known.count(std::string(name)) != 0) continue;
    if (rule.is_bool() && !rule.as_bool()) return at + " has " + std::string(name) + ", which is not described";
    if (rule.is_bool()) continue;
    const std::string wrong = check(each, rule, at + "." + std::string(name));
    if (!wrong.empty()) return wrong;
  }
  return "";
}

const json::value* JsonSchema::find(const Value& reference) const {
  const std::string start = "#/components/schemas/";
  const std::string text = text_of(reference);
  return text.compare(0, start.size(), start) == 0 ? schemas_.if_contains(text.substr(start.size())) : nullptr;
}

void JsonSchema::collect_names(const Value& schema, bool all, std::set<std::string>& names) const {
  const json::object& rules = schema.as_object();
  if (const Value* const properties = rules.if_contains("properties")) {
    for (const auto& [name, property] : properties->as_object()) names.insert(std::string(name));
  }
  if (!all) return;
  if (const Value* const reference = rules.if_contains("$ref")) {
    if (const Value* const found = find(*reference)) collect_names(*found, true, names);
  }
  if (const Value* const parts = rules.if_contains("allOf")) {
    for (const Value& part : parts->as_array()) collect_names(part, true, names);
  }
}

}  // namespace bide::server_tests
