// Value: a parameter of a statement. Rows: what a statement gave back. The types are those that both dialects have.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/job_id.h"

namespace bide::brokers::sql {

class Value {
 public:
  enum class Type : std::uint8_t { kInteger, kBytes, kText, kId };

  static Value integer(std::optional<std::int64_t> value) {
    Value made(Type::kInteger, !value);
    made.integer_ = value.value_or(0);
    return made;
  }
  static Value text(std::string_view value) { return copied(Type::kText, value); }
  static Value bytes(std::string_view value) { return copied(Type::kBytes, value); }
  static Value bytes_or_null(std::string_view value) {
    Value made = copied(Type::kBytes, value);
    made.is_null_ = value.empty();
    return made;
  }
  // Not copied: it must live until the statement has run.
  static Value borrowed(std::string_view value) {
    Value made(Type::kBytes, false);
    made.borrowed_ = value;
    made.is_borrowed_ = true;
    return made;
  }
  static Value id(const JobId& value) {
    return copied(Type::kId, {reinterpret_cast<const char*>(value.bytes().data()), JobId::kSize});
  }

  Type type() const { return type_; }
  bool is_null() const { return is_null_; }
  std::int64_t integer() const { return integer_; }
  std::string_view bytes() const { return is_borrowed_ ? borrowed_ : std::string_view(owned_); }

 private:
  Value(Type type, bool is_null) : type_(type), is_null_(is_null) {}
  static Value copied(Type type, std::string_view value) {
    Value made(type, false);
    made.owned_ = value;
    return made;
  }

  Type type_;
  bool is_null_;
  bool is_borrowed_ = false;
  std::int64_t integer_ = 0;
  std::string owned_;
  std::string_view borrowed_;
};

using Values = std::vector<Value>;

class Rows {
 public:
  struct Cell {
    bool is_null = true;
    std::int64_t integer = 0;
    std::string bytes = {};
  };

  explicit Rows(std::size_t columns = 1) : columns_(columns) {}
  Cell& add() { return cells_.emplace_back(); }

  std::size_t columns() const { return columns_; }
  std::size_t size() const { return cells_.size() / columns_; }
  const Cell& at(std::size_t row, std::size_t column) const { return cells_[row * columns_ + column]; }
  std::int64_t integer(std::size_t row, std::size_t column) const { return at(row, column).integer; }
  std::optional<std::int64_t> integer_or_null(std::size_t row, std::size_t column) const {
    if (at(row, column).is_null) return std::nullopt;
    return at(row, column).integer;
  }
  const std::string& bytes(std::size_t row, std::size_t column) const { return at(row, column).bytes; }
  std::string take(std::size_t row, std::size_t column) { return std::move(cells_[row * columns_ + column].bytes); }
  JobId id(std::size_t row, std::size_t column) const;

 private:
  std::size_t columns_;
  std::vector<Cell> cells_;
};

inline JobId Rows::id(std::size_t row, std::size_t column) const {
  std::array<std::uint8_t, JobId::kSize> value{};
  const std::string& from = bytes(row, column);
  for (std::size_t i = 0; i < value.size() && i < from.size(); ++i) value[i] = static_cast<std::uint8_t>(from[i]);
  return JobId(value);
}

}  // namespace bide::brokers::sql
