// Problem: what was wrong with a request, as RFC 9457 says it: a status, a stable code for programs and one line for
// people. Error codes of the seam become problems and come back by one table.
//
//   {"type":"urn:bide:problem:unknown_field","title":"...","status":400,"code":"unknown_field",
//    "detail":"unknown field 'qeue'; did you mean 'queue'?","field":"qeue"}

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/result.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace bide::wire {

inline constexpr std::string_view kProblemContentType = "application/problem+json";

struct Problem {
  int status = 400;
  std::string code = {};
  std::string detail = {};
  std::string field = {};                  // Of the request, where it is about one.
  std::optional<std::size_t> offset = {};  // invalid_json: which byte of the body.
  Milliseconds retry_after{0};             // Not zero: not before.
};

// Every code there is, with its status and a title.
struct ProblemKind {
  std::string_view code;
  int status;
  std::string_view title;
};
std::span<const ProblemKind> problem_kinds();

// The status comes from the table; the code must be in it.
Problem make_problem(std::string_view code, std::string detail, std::string field = {});

Problem problem_of(const Error& error);
Problem problem_of(const JsonFault& fault);
// What a caller can do about it: by the code, and where that says nothing to us by the status.
Error error_of(const Problem& problem);

void write(JsonWriter& out, const Problem& problem);
std::string problem_json(const Problem& problem);

// One within an answer. Lenient: fields that are not there are empty.
Problem read_problem(JsonReader& in);

// A whole answer; also one that is no problem document at all: then the detail is the status, and the beginning of what
// came.
Problem read_problem(std::string_view body, int status);

}  // namespace bide::wire
