// Subject: one broker under test, empty at first, with the powers over it that the suite needs: closing and opening it,
// crashing it, and moving its time. Each broker has one, in the file that instantiates the suite for it:
//
//   INSTANTIATE_TEST_SUITE_P(Engine, BrokerConformance, testing::Values(SubjectParam{"engine", make_engine_subject}),
//                            SubjectParam::name_of);

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "bide/broker.h"
#include "bide/inspector.h"

namespace bide::conformance {

class Subject {
 public:
  virtual ~Subject() = default;

  virtual Broker& broker() = 0;
  virtual Inspector& inspector() = 0;

  // Closes the broker cleanly and opens it again on the same data. No subscription may be alive; leases may.
  virtual void reopen() = 0;
  // The same as after a sudden end: nothing that was not yet confirmed may be relied on.
  virtual void crash_and_reopen() { reopen(); }

  // Elapsed time and wall clock go on by so much: at once where time is virtual, otherwise by really waiting.
  virtual void advance(Milliseconds by) = 0;
  // Only the wall clock is set forward or back. Called only where time is virtual.
  virtual void step_wall_clock(Milliseconds) {}
  // The wall clock of the broker. Called from any thread.
  virtual Time now() = 0;

  virtual bool has_virtual_time() { return broker().capabilities().virtual_time; }
  // The unit in which the suite's waits are counted: long enough to be told apart from the time a call takes.
  virtual Milliseconds beat() { return Milliseconds(has_virtual_time() ? 1000 : 400); }
  // False where a crash may also take what was written down but not confirmed to anybody, such as attempts begun.
  virtual bool crash_keeps_attempts() { return true; }
  // False where the broker does not choose who gets which job: then only a random wait parts what crashed together.
  virtual bool parts_last_chances() { return has_virtual_time(); }
  // False where a worker that dies is seen by nothing but its lease running out: then nobody counts it as a crash.
  virtual bool notices_dead_workers() { return true; }
  // How long after a crash leases of the dead process may still count as held.
  virtual Milliseconds crash_notice() { return Milliseconds(0); }
  // How long done jobs are remembered, where a test can wait for the end of it.
  virtual std::optional<Milliseconds> retention() { return std::nullopt; }
};

using SubjectFactory = std::function<std::unique_ptr<Subject>()>;

struct SubjectParam {
  std::string name;
  SubjectFactory make;
  std::string missing = {};  // What this machine lacks for it, if anything: then it is skipped.

  static std::string name_of(const testing::TestParamInfo<SubjectParam>& info) { return info.param.name; }
  friend void PrintTo(const SubjectParam& param, std::ostream* out) { *out << param.name; }
};

}  // namespace bide::conformance
