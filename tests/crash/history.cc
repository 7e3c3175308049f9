#include "crash/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "platform/clock.h"

namespace bide::crash {

std::int64_t Event::number(std::size_t place) const {
  return place < more.size() ? std::strtoll(more[place].c_str(), nullptr, 10) : 0;
}

std::int64_t now_us() { return platform::real_clock().now().elapsed_us; }

HistoryWriter::HistoryWriter(const std::string& directory, const std::string& process)
    : descriptor_(::open((directory + "/" + process).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
  if (descriptor_ < 0) std::abort();
}

HistoryWriter::~HistoryWriter() { ::close(descriptor_); }

void HistoryWriter::say_all(const std::vector<std::string>& lines) {
  const std::string time = std::to_string(now_us()) + " ";
  std::string bytes;
  for (const std::string& line : lines) bytes += time + line + "\n";
  if (::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
}

Event parse_event(const std::string& process, const std::string& line) {
  Event event{.process = process};
  std::istringstream in(line);
  in >> event.at_us >> event.what >> event.subject;
  for (std::string word; in >> word;) event.more.push_back(word);
  return event;
}

std::uint64_t count_events(const std::string& directory, const std::string& process, const std::string& what) {
  std::uint64_t count = 0;
  std::ifstream file(directory + "/" + process);
  for (std::string line; std::getline(file, line);) count += parse_event(process, line).what == what ? 1 : 0;
  return count;
}

std::vector<Event> read_histories(const std::string& directory) {
  std::vector<Event> events;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string process = entry.path().filename().string();
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (!file.eof()) events.push_back(parse_event(process, line));
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at_us < b.at_us; });
  return events;
}

}  // namespace bide::crash
