// Say: the one way by which words of others (errors, names, URLs, what handlers wrote) reach a terminal. Control
// characters and bytes that are not text are escaped, passwords in URLs are left out.
//
//   say("queue " + name + " is paused");        on stdout
//   tell("warning: --due is in the past");      on stderr, after "bide: "

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/json.h"

namespace bide::cli {

// One line, whatever the text was.
std::string for_people(std::string_view text);

void say(std::string_view line);
void tell(std::string_view line);

// A result of a job, as it is; on a terminal line by line, escaped.
void print_result(std::string_view result);

// What is odd but no error. With --json they are given in the answer, so that stderr has errors only.
class Warnings {
 public:
  explicit Warnings(bool json) : json_(json) {}

  void add(const std::string& text);
  JsonArray to_json() const;

 private:
  const bool json_;
  std::vector<std::string> texts_;
};

}  // namespace bide::cli
