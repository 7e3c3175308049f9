// The notice board: reading it up after connecting, and keeping it up to date.

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/consumer_state.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr std::uint16_t kMemoryPrefetch = 1000;
constexpr std::uint64_t kMemoryAcks = 250;
// How often news are looked for while nothing is to be started: for pauses, and for those who run.
constexpr Milliseconds kLookForNews{250};
constexpr Milliseconds kTryAgain{1000};
// Without a marker the stream is taken to be read up after such a silence.
constexpr Milliseconds kSilence{2000};
constexpr Milliseconds kLongSilence{5000};
constexpr std::size_t kMostSpared = 10'000;

}  // namespace

Status Consumer::State::start_reading() {
  caught_up = false;
  asking = false;
  if (Status status = connection->open_channel(kNewsChannel); !status) return status;
  Result<std::string> queue = connection->declare_private_queue(kNewsChannel);
  if (!queue) return queue.error();
  private_queue = std::move(*queue);
  if (Status status = connection->bind(kNewsChannel, {names.notices(), private_queue, "", false}); !status) {
    return status;
  }
  // From here on everything new comes as news; what is older is in the stream, before the marker.
  marker = "m" + std::to_string(random.next());
  reading_since = last_memory = steady_clock::now();
  if (Status status = read_memory(); !status) return status;
  write_marker();
  watch_silence(marker);
  return {};
}

// Nobody waits for the answer: a stream whose leader has just died must not hold up the connection.
Status Consumer::State::read_memory() {
  if (Status status = connection->open_channel(kMemoryChannel); !status) return status;
  ConsumeOptions options;
  options.queue = names.notices();
  options.tag = "bide-memory";
  options.prefetch = kMemoryPrefetch;
  options.no_wait = true;
  options.arguments = {{"x-stream-offset", next_offset < 0 ? Field("first") : Field(next_offset)}};
  if (Status status = connection->consume(kMemoryChannel, options); !status) return status;
  memory_unacked = 0;
  memory_open = true;
  return {};
}

void Consumer::State::memory_is_closed() {
  memory_open = false;
  after(kTryAgain, [this, written = marker] {
    if (connection == nullptr || written != marker || memory_open) return;
    if (Status status = read_memory(); !status && !connection->alive()) lose(status.error());
  });
}

void Consumer::State::write_marker() {
  Publication publication;
  publication.to.kind = Destination::Kind::kNotices;
  publication.message.message_id = marker;
  publication.message.body = Notice{.kind = Notice::Kind::kMarker, .id = {}, .name = marker}.to_text();
  publication.done = [weak = weak_from_this(), written = marker](const Status& status) {
    const auto state = weak.lock();
    if (status || state == nullptr) return;
    state->letters.post([state, written] {
      state->after(kTryAgain, [state = state.get(), written] {
        if (written == state->marker && state->memory_open) state->write_marker();
      });
    });
  };
  std::vector<Publication> one;
  one.push_back(std::move(publication));
  publisher.publish(std::move(one));
}

// When the server takes no messages, or the stream has no leader, the marker does not come, and nobody can have had a
// notice confirmed either. Workers are needed all the more then: after a while without a word they go on with what they
// know, and read on beside it.
void Consumer::State::watch_silence(const std::string& written) {
  after(kTryAgain, [this, written] {
    if (caught_up || written != marker || connection == nullptr) return;
    const Steady moment = steady_clock::now();
    const bool blocked = publisher.pressure().level == Pressure::Level::kBlocked;
    if (moment - last_memory > kSilence && (blocked || moment - reading_since > kLongSilence)) {
      caught_up = true;
      return;
    }
    watch_silence(written);
  });
}

void Consumer::State::take_memory(const Delivery& delivery) {
  if (!memory_open) return;
  last_memory = steady_clock::now();
  const Field* offset = find_field(delivery.message.headers, "x-stream-offset");
  if (offset != nullptr && offset->number() != nullptr) next_offset = *offset->number() + 1;
  const std::optional<Notice> notice = Notice::parse(delivery.message.body);
  if (notice) apply(*notice);
  if (notice && notice->kind == Notice::Kind::kMarker && notice->name == marker) return finish_reading();
  if (++memory_unacked < kMemoryAcks) return;
  memory_unacked = 0;
  if (Status sent = connection->ack(kMemoryChannel, delivery.tag, true); !sent) lose(sent.error());
}

void Consumer::State::finish_reading() {
  caught_up = true;
  memory_open = false;
  const auto retention = std::chrono::microseconds(settings.notice_retention).count();
  board.forget_before(platform::real_clock().now().wall_us - retention);
  if (Status closed = connection->close_channel(kMemoryChannel); !closed && !connection->alive()) lose(closed.error());
}

void Consumer::State::take_news(const Delivery& delivery) {
  if (const std::optional<Notice> notice = Notice::parse(delivery.message.body)) apply(*notice);
  // There may be more; what is being checked waits for the end of it.
  if (Status sent = connection->get(kNewsChannel, private_queue, true); !sent) lose(sent.error());
}

void Consumer::State::apply(const Notice& notice) {
  board.add(notice);
  if (notice.kind != Notice::Kind::kMarker) stamps.saw(notice.stamp);
}

void Consumer::State::ask_if_needed() {
  if (!caught_up || asking) return;
  const Steady moment = steady_clock::now();
  const bool curious = (!subscribers.empty() || !held.empty()) && moment - last_asked >= kLookForNews;
  if (to_check.empty() && questions.empty() && !curious) return;
  checking = std::exchange(to_check, {});
  asked = std::exchange(questions, {});
  if (!settings.notices) return news_are_read();
  asking = true;
  if (Status sent = connection->get(kNewsChannel, private_queue, true); !sent) lose(sent.error());
}

void Consumer::State::news_are_read() {
  asking = false;
  last_asked = steady_clock::now();
  for (Parcel& parcel : std::exchange(checking, {})) judge(std::move(parcel));
  for (const auto& question : std::exchange(asked, {})) question(&board);
}

// Without an answer: nobody waits for these, but they must not be lost while the server takes nothing.
void Consumer::State::write(std::vector<Notice> notices) {
  std::vector<Publication> publications;
  for (const Notice& notice : notices) {
    board.add(notice);
    Publication publication;
    publication.to.kind = Destination::Kind::kNotices;
    publication.message.message_id = "notice-" + std::to_string(notice.stamp);
    publication.message.body = notice.to_text();
    publication.done = [](const Status&) {};
    publication.patient = true;
    publications.push_back(std::move(publication));
  }
  publisher.publish(std::move(publications));
}

// This process lives, so no job has killed it: what was handed out counts as lost, what was not does not count.
void Consumer::State::spare_what_was_out(const Source* only) {
  if (!settings.notices || stopping) return;
  std::vector<Notice> notices;
  const auto add_notice = [&](Notice::Kind kind, const Parcel& parcel) {
    if (only != nullptr && parcel.source.get() != only) return;
    if (notices.size() >= kMostSpared || parcel.message.published == 0) return;
    notices.push_back({.kind = kind,
                       .id = parcel.message.job.id,
                       .name = {},
                       .stamp = stamps.next(),
                       .due = {},
                       .published = parcel.message.published});
  };
  for (const auto& [id, entry] : held) add_notice(Notice::Kind::kLost, entry.parcel);
  for (const auto& [channel, source] : sources) {
    for (const Parcel& parcel : source->buffer) add_notice(Notice::Kind::kSpare, parcel);
  }
  for (const std::vector<Parcel>* parcels : {&to_check, &checking}) {
    for (const Parcel& parcel : *parcels) add_notice(Notice::Kind::kSpare, parcel);
  }
  for (const auto& [when, parcel] : doubtful) add_notice(Notice::Kind::kSpare, parcel);
  write(std::move(notices));
}

}  // namespace bide::brokers::rabbitmq
