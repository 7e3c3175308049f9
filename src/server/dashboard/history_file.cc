#include "server/dashboard/history_file.h"

#include <optional>
#include <utility>

namespace bide::server {

HistoryFile::HistoryFile(metrics::JobHistory& history, HistoryFileOptions options)
    : history_(history),
      options_(std::move(options)),
      disk_(options_.disk != nullptr ? *options_.disk : platform::real_disk()) {
  report(read());
  timer_ = std::make_unique<platform::TimerThread>([this](platform::Moment now) {
    if (std::exchange(read_yet_, true)) report(write());
    return std::optional<platform::Moment>(now + options_.every);
  });
}

HistoryFile::~HistoryFile() {
  timer_.reset();
  report(write());
}

Status HistoryFile::read() {
  const auto exists = disk_.exists(options_.path);
  if (!exists) return exists.error();
  if (!*exists) return {};
  auto file = disk_.open(options_.path, platform::OpenMode::kReadOnly);
  if (!file) return file.error();
  const auto size = (*file)->size();
  if (!size) return size.error();
  std::string text(*size, '\0');
  const auto count = (*file)->read(0, text.data(), text.size());
  if (!count) return count.error();
  text.resize(*count);
  return history_.load(text);
}

Status HistoryFile::write() {
  const std::string temporary = options_.path + ".new";
  auto file = disk_.open(temporary, platform::OpenMode::kCreate);
  if (!file) return file.error();
  if (const Status emptied = (*file)->truncate(0); !emptied) return emptied;
  if (const Status written = (*file)->write(0, history_.save()); !written) return written;
  if (const Status synced = (*file)->sync(); !synced) return synced;
  return disk_.rename(temporary, options_.path);
}

void HistoryFile::report(const Status& status) const {
  if (!status && options_.on_problem) options_.on_problem("the history of jobs is not kept: " + status.error().message);
}

}  // namespace bide::server
