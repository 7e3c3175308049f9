// History: what producers, workers and the fault injector saw, appended by each of them to a file of its own, outside
// of the broker that is under test. A line is one event, written with one write before or after the event as its name
// says, so it survives the death of its process; all of them are stamped by the one clock of the machine.
//
//   at_us enqueue ID DELAY_MS              about to be enqueued
//   at_us enqueued ID FRESH                confirmed; FRESH is 0 when the job was there already
//   at_us not_enqueued ID                  refused: nothing was written
//   at_us leased ID TOKEN ATTEMPT LEASE_MS GIVEN_US
//                                          a lease has arrived that was given AGE_MS ago
//   at_us start ID TOKEN ATTEMPT           the handler begins
//   at_us finish ID TOKEN                  ... and ends
//   at_us extended ID TOKEN ASKED_US       the lease was extended, as asked for at ASKED_US
//   at_us settle ID TOKEN OUTCOME AFTER_MS about to be settled; see Outcome below
//   at_us effect ID DELAY_MS PARENT TOKEN  a job that becomes real together with that outcome
//   at_us settled ID TOKEN                 the outcome was accepted
//   at_us not_settled ID TOKEN             it was refused, because the lease is lost
//   at_us spawned NAME / killed NAME ROLE / paused NAME ROLE / resumed NAME / stopped NAME / gone NAME
//                                          by the injector: about processes, which are named as their files

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bide::crash {

// Done and dead are final; the others are followed by another attempt.
inline constexpr std::string_view kDone = "done";
inline constexpr std::string_view kDead = "dead";
inline constexpr std::string_view kRetry = "retry";
inline constexpr std::string_view kTimedOut = "timed_out";
inline constexpr std::string_view kReturned = "returned";

struct Event {
  std::int64_t at_us = 0;
  std::string process = {};  // Whose history it is from.
  std::string what = {};
  std::string subject = {};  // A job's id, or the name of a process.
  std::vector<std::string> more = {};

  std::string text(std::size_t place) const { return place < more.size() ? more[place] : std::string(); }
  std::int64_t number(std::size_t place) const;
};

std::int64_t now_us();

// Safe to share between threads.
class HistoryWriter {
 public:
  // Appends to the file `process` in the directory. Aborts when it cannot: a history with holes proves nothing.
  HistoryWriter(const std::string& directory, const std::string& process);
  ~HistoryWriter();
  HistoryWriter(const HistoryWriter&) = delete;
  HistoryWriter& operator=(const HistoryWriter&) = delete;

  // The words after the time, with spaces between them; several lines are one write.
  void say(const std::string& words) { say_all({words}); }
  void say_all(const std::vector<std::string>& lines);

 private:
  const int descriptor_;
};

// Every history of the directory, in the order of time. A last line that was cut short is left out.
std::vector<Event> read_histories(const std::string& directory);
// How many events of a kind one process has written down so far; also while it is writing.
std::uint64_t count_events(const std::string& directory, const std::string& process, const std::string& what);
// One line of the history of `process`.
Event parse_event(const std::string& process, const std::string& line);

}  // namespace bide::crash
