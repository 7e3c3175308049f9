// DeadSet: the dead jobs of a deployment, one queue on the server for each queue, browsed (queue_browser.h).
//
// A cancel does not look for its job among the dead; a dead job that was cancelled is removed by whoever comes across it.
//
// A message without an id of bide's is named by its content: the same message has the same id each time.
//
// Used by one thread. `queues` are names of queues as jobs have them; those that never had a dead job are no mistake.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/inspector.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/dialect.h"
#include "brokers/rabbitmq/notices.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/queue_browser.h"

namespace bide::brokers::rabbitmq {

class DeadSet {
 public:
  DeadSet(const Settings& settings, const Dialect& dialect, QueueBrowser& browser, Publisher& publisher)
      : names_(settings.prefix), dialect_(dialect), browser_(browser), publisher_(publisher) {}

  // What was cancelled, from now on. Null: nobody knows.
  void set_notices(std::shared_ptr<const NoticeBoard> board) { board_ = std::move(board); }

  // Newest first, over all the given queues. The cursor is that of a page before, or empty. Pages that follow at once are
  // those of the moment of the first.
  Result<JobPage> list(const std::vector<std::string>& queues, const JobFilter& filter, const std::string& cursor,
                       std::size_t limit);
  // kNotFound: it is not in the dead set.
  Result<JobInfo> find(const std::vector<std::string>& queues, JobId id);

  // One status for each id, in order; kNotFound: it is not in the dead set. Each is published again and taken out of the
  // dead set when that is confirmed; up to a thousand at a time, those in the order of the ids. Messages that were no
  // jobs may share an id: one of them for each time that it is named.
  Result<std::vector<Status>> replay(const std::vector<std::string>& queues, const std::vector<JobId>& ids,
                                     const ReplayOptions& options);
  Result<std::vector<Status>> remove(const std::vector<std::string>& queues, const std::vector<JobId>& ids);

 private:
  // The order of a list, newest first; the cursor is the place of the last one of a page.
  struct Place {
    std::int64_t dead_at = 0;
    JobId id = {};

    bool newer_than(const Place& other) const;
    std::string to_text() const;
    static std::optional<Place> parse(std::string_view text);
  };
  struct Found {
    Place place;
    JobInfo info;
  };
  // What a list has read beyond its page.
  struct Ahead {
    std::vector<std::string> queues;
    JobFilter filter;
    std::string cursor;        // Behind which they come.
    std::vector<Found> found;  // In their order.
    bool cut = false;          // There are more in the dead set.
    std::chrono::steady_clock::time_point until;
  };
  // A message of the dead set, and which of the ids it has.
  struct Chosen {
    std::size_t index;
    std::string queue;
    Delivery delivery;
    JobId id;
  };
  using Session = QueueBrowser::Session;
  using Action = std::function<void(Session& session, std::vector<Chosen> chosen, std::vector<Status>& statuses)>;
  using Reader = std::function<bool(Session& session, Delivery delivery, JobInfo info)>;

  std::vector<std::string> distinct(const std::vector<std::string>& queues) const;
  static bool sort_and_cut(std::vector<Found>& found);
  Status scan(const std::vector<std::string>& queues, const JobFilter& filter, const std::optional<Place>& after);
  Result<std::vector<Status>> act(const std::vector<std::string>& queues, const std::vector<JobId>& ids,
                                  const Action& action);
  void replay(Session& session, std::vector<Chosen> chosen, const ReplayOptions& options,
              std::vector<Status>& statuses);
  Result<std::unique_ptr<Session>> browse(const std::string& queue, const Reader& reader);
  // Removes again what the server has given back though it was acknowledged.
  void remove_left_over(const std::vector<std::string>& queues, const std::vector<JobId>& ids);

  const Names names_;
  const Dialect& dialect_;
  QueueBrowser& browser_;
  Publisher& publisher_;
  std::shared_ptr<const NoticeBoard> board_;
  Ahead ahead_;
};

}  // namespace bide::brokers::rabbitmq
