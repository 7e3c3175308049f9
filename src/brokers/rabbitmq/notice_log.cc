#include "brokers/rabbitmq/notice_log.h"

#include <utility>

#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr std::uint16_t kLogPrefetch = 1000;
constexpr std::uint64_t kLogAcks = 250;
// How often the notice queue is read while nothing is to be started: for pauses, and for those who run.
constexpr Milliseconds kReadAgain{250};
constexpr Milliseconds kTryAgain{1000};
// Without a marker the log is taken to be read after such a silence.
constexpr Milliseconds kSilence{2000};
constexpr std::size_t kLinesAMessage = 500;
constexpr Milliseconds kRepeatPauses{60'000};

}  // namespace

NoticeLog::NoticeLog(const Settings& settings, Publisher& publisher, Stamps& stamps, Timers& timers,
                     std::shared_ptr<platform::PollableTaskQueue> tasks)
    : settings_(settings),
      names_(settings.prefix),
      publisher_(publisher),
      stamps_(stamps),
      timers_(timers),
      tasks_(std::move(tasks)),
      read_(!settings.notices) {}

Status NoticeLog::start(Connection& connection) {
  connection_ = &connection;
  if (!settings_.notices) return {};
  if (Status status = connection.open_channel(kQueueChannel); !status) return status;
  Result<std::string> queue = connection.declare_private_queue(kQueueChannel);
  if (!queue) return queue.error();
  queue_ = std::move(*queue);
  if (Status status = connection.bind(kQueueChannel, {names_.notices(), queue_, "", false}); !status) return status;
  // From here on everything new comes to the queue; what is older is in the log, before the marker.
  marker_ = "m" + std::to_string(random_.next());
  last_logged_ = steady_clock::now();
  if (Status status = read_log(); !status) return status;
  write_marker();
  watch_silence(marker_);
  return {};
}

void NoticeLog::stop(const Error& error) {
  connection_ = nullptr;
  reading_ = log_open_ = false;
  read_ = !settings_.notices;
  refuse_questions(error);
}

void NoticeLog::refuse_questions(const Error& error) {
  for (auto* list : {&questions_, &asked_}) {
    for (const Question& question : std::exchange(*list, {})) question(error);
  }
}

// Nobody waits for the answer: a stream whose leader has just died must not hold up the connection.
Status NoticeLog::read_log() {
  if (Status status = connection_->open_channel(kLogChannel); !status) return status;
  ConsumeOptions options;
  options.queue = names_.notices();
  options.tag = "bide-notices";
  options.prefetch = kLogPrefetch;
  options.no_wait = true;
  options.arguments = {{"x-stream-offset", next_offset_ < 0 ? Field("first") : Field(next_offset_)}};
  if (Status status = connection_->consume(kLogChannel, options); !status) return status;
  unacked_ = 0;
  log_open_ = true;
  last_logged_ = steady_clock::now();
  return {};
}

void NoticeLog::log_is_closed() {
  log_open_ = false;
  timers_.after(kTryAgain, [this, written = marker_] {
    // When the connection is lost over it, the next event says so.
    if (connection_ == nullptr || written != marker_ || log_open_) return;
    // The last marker may have gone nowhere: a stream that is not there keeps nothing, and nobody is told.
    if (read_log() && !read_) write_marker();
  });
}

void NoticeLog::write_marker() {
  Publication publication;
  publication.to.kind = Destination::Kind::kNotices;
  publication.message.message_id = marker_;
  publication.message.body = Notice{.kind = Notice::Kind::kMarker, .id = {}, .name = marker_}.to_text();
  publication.done = [this, tasks = tasks_, written = marker_](const Status& status) {
    if (status) return;
    tasks->post([this, written] {
      timers_.after(kTryAgain, [this, written] {
        if (connection_ != nullptr && written == marker_ && !read_) write_marker();
      });
    });
  };
  std::vector<Publication> one;
  one.push_back(std::move(publication));
  publisher_.publish(std::move(one));
}

// When the server takes no messages the marker cannot be written, but the log can be read, and nobody can have had a
// notice confirmed meanwhile: after a while without another notice all are known. A stream without a leader is waited for:
// whoever has not read it would run what is cancelled or paused. Its channel is closed at once when it is read, so a channel
// that stays open is read from.
void NoticeLog::watch_silence(const std::string& written) {
  timers_.after(kTryAgain, [this, written] {
    if (read_ || written != marker_ || connection_ == nullptr) return;
    const Steady moment = steady_clock::now();
    const bool blocked = publisher_.pressure().level == Pressure::Level::kBlocked;
    if (blocked && log_open_ && moment - last_logged_ > kSilence) {
      read_ = true;
      return;
    }
    watch_silence(written);
  });
}

Status NoticeLog::take(const Delivery& delivery) {
  if (delivery.channel == kLogChannel) return take_logged(delivery);
  for (const Notice& notice : Notice::parse_lines(delivery.message.body)) add(notice);
  // There may be more; what is being checked waits for the end of it.
  return connection_->get(kQueueChannel, queue_, true);
}

Status NoticeLog::take_logged(const Delivery& delivery) {
  if (!log_open_) return {};
  last_logged_ = steady_clock::now();
  const Field* offset = find_field(delivery.message.headers, "x-stream-offset");
  if (offset != nullptr && offset->number() != nullptr) next_offset_ = *offset->number() + 1;
  bool is_marker = false;
  for (const Notice& notice : Notice::parse_lines(delivery.message.body)) {
    add(notice);
    is_marker = is_marker || (notice.kind == Notice::Kind::kMarker && notice.name == marker_);
  }
  if (is_marker) {
    read_ = true;
    log_open_ = false;
    const auto retention = std::chrono::microseconds(settings_.notice_retention).count();
    board_.forget_before(platform::real_clock().now().wall_us - retention);
    return connection_->begin_close(kLogChannel);
  }
  if (++unacked_ < kLogAcks) return {};
  unacked_ = 0;
  return connection_->ack(kLogChannel, delivery.tag, true);
}

bool NoticeLog::wants_read(bool working) const {
  return !questions_.empty() || (working && steady_clock::now() - last_read_ >= kReadAgain);
}

Status NoticeLog::begin_read() {
  asked_ = std::exchange(questions_, {});
  reading_ = settings_.notices;
  return settings_.notices ? connection_->get(kQueueChannel, queue_, true) : Status();
}

void NoticeLog::queue_is_empty() {
  reading_ = false;
  last_read_ = steady_clock::now();
  if (settings_.notices && last_read_ >= next_repeat_) repeat_old_pauses();
  for (const Question& question : std::exchange(asked_, {})) question(&board_);
}

void NoticeLog::add(const Notice& notice) {
  board_.add(notice);
  if (notice.kind != Notice::Kind::kMarker) stamps_.saw(notice.stamp);
}

// The stream forgets what is older than the retention; a queue stays paused.
void NoticeLog::repeat_old_pauses() {
  next_repeat_ = last_read_ + kRepeatPauses;
  const auto half = std::chrono::microseconds(settings_.notice_retention).count() / 2;
  const std::int64_t now_us = platform::real_clock().now().wall_us;
  // Once in a while is enough, and whoever comes first does it for all.
  if (now_us - last_repeat_us_ < half / 2) return;
  last_repeat_us_ = now_us;
  write(board_.pauses_before(now_us - half));
}

// Nobody waits for these, but they must not be lost while the server takes nothing.
void NoticeLog::write(std::vector<Notice> notices) {
  std::vector<Publication> publications;
  for (std::size_t i = 0; i < notices.size(); ++i) {
    board_.add(notices[i]);
    if (i % kLinesAMessage == 0) {
      Publication& publication = publications.emplace_back();
      publication.to.kind = Destination::Kind::kNotices;
      publication.message.message_id = "notice-" + std::to_string(notices[i].stamp);
      publication.done = [](const Status&) {};
      publication.patient = true;
    }
    std::string& body = publications.back().message.body;
    body += (body.empty() ? "" : "\n") + notices[i].to_text();
  }
  publisher_.publish(std::move(publications));
}

}  // namespace bide::brokers::rabbitmq
