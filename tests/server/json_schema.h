// JsonSchema: what of JSON Schema (2020-12) the OpenAPI document uses, checked by code that does not know how the
// document is made.

#pragma once

#include <boost/json.hpp>
#include <set>
#include <string>

namespace bide::server_tests {

class JsonSchema {
 public:
  // Refers to the schemas of the document, which must outlive it.
  explicit JsonSchema(const boost::json::value& document);

  // The first thing that is wrong with the value, or nothing. A keyword that is not known here is wrong, too.
  std::string check(const boost::json::value& value, const boost::json::value& schema,
                    const std::string& at = "$") const;

 private:
  using Value = boost::json::value;

  std::string check_keyword(const Value& value, const Value& schema, const std::string& keyword, const Value& rule,
                            const std::string& at) const;
  std::string check_type(const Value& value, const Value& rule, const std::string& at) const;
  std::string check_alternatives(const Value& value, const Value& rule, const std::string& at) const;
  std::string check_properties(const Value& value, const Value& rule, const std::string& at) const;
  // `known`: those that the schema names.
  std::string check_others(const Value& value, const std::set<std::string>& known, const Value& rule,
                           const std::string& at) const;
  const Value* find(const Value& reference) const;
  // Those that the schema names itself, and with `all` those of the schemas that it is made of.
  void collect_names(const Value& schema, bool all, std::set<std::string>& names) const;

  const boost::json::object& schemas_;
};

}  // namespace bide::server_tests
