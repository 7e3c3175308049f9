#include "move/held_queues.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace bide::move {

namespace {

constexpr std::chrono::hours kNever{24 * 365 * 99};

Job probe() {
  Job job;
  job.kind = kHoldQueue;
  job.queue = kHoldQueue;
  job.delay = kNever;
  return job;
}

Job mark_of(const std::string& queue) {
  Job mark = probe();
  mark.body = queue;
  mark.content_type = "text/plain; charset=utf-8";
  mark.unique_key = std::string(kHoldQueue) + ":" + queue;
  return mark;
}

}  // namespace

Result<bool> HeldQueues::is_same_place() {
  if (!transfer_.target().inspect) return false;
  auto placed = transfer_.ask<std::vector<Result<Enqueued>>>(
      [&](auto done) { from_.broker.enqueue({probe()}, std::move(done)); });
  if (!placed) return placed.error();
  if (!placed->front()) return placed->front().error();
  const JobId id = placed->front()->id;
  const auto found =
      transfer_.ask<JobInfo>([&](auto done) { transfer_.to().inspector.find(id, std::move(done)); });
  if (Status removed = forget(id); !removed) return removed.error();
  if (!found && found.error().code != ErrorCode::kNotFound) return found.error();
  return found.has_value();
}

Status HeldQueues::forget(const JobId& id) {
  const auto removed = transfer_.ask<std::vector<Status>>(
      [&](auto done) { from_.inspector.cancel({id}, {}, std::move(done)); });
  return removed ? Status() : removed.error();
}

Status HeldQueues::pause(const Endpoint& where, const std::string& queue, bool paused) {
  return transfer_.ask<void>([&](auto done) { where.inspector.pause(queue, paused, std::move(done)); });
}

Status HeldQueues::read_marks() {
  std::string cursor;
  do {
    auto page = transfer_.ask<JobPage>([&](auto done) {
      from_.inspector.list({.states = {JobState::kScheduled}, .queue = kHoldQueue}, cursor, 1000, std::move(done));
    });
    if (!page) return page.error();
    for (const JobInfo& info : page->jobs) {
      if (!info.job.body.empty()) {
        marks_[info.job.body] = info.job.id;
      } else if (Status gone = forget(info.job.id); !gone) {  // Of a mover that was killed while it looked.
        return gone;
      }
    }
    cursor = page->next;
  } while (!cursor.empty());
  read_ = true;
  return {};
}

Status HeldQueues::hold(const std::vector<QueueInfo>& queues) {
  if (!read_) {
    if (Status read = read_marks(); !read) return read;
  }
  for (const QueueInfo& queue : queues) {
    const bool first = held_.insert(queue.name).second;
    if (!first && !queue.paused) {
      transfer_.report().notes.push_back("queue " + queue.name +
                                         " was resumed at the source during the move: it is paused again");
    }
    if (queue.paused && first && !marks_.contains(queue.name)) {
      const bool can_pause = transfer_.target().pause;
      transfer_.report().notes.push_back("queue " + queue.name + " was paused at the source" +
                                         (can_pause ? ", and is paused at the target now" : ""));
      if (!can_pause) continue;
      if (Status paused = pause(transfer_.to(), queue.name, true); !paused) return paused;
    }
    if (queue.paused) continue;
    if (!marks_.contains(queue.name)) {
      // Marked first: paused and not marked would mean that somebody else did it.
      auto marked = transfer_.ask<std::vector<Result<Enqueued>>>(
          [&](auto done) { from_.broker.enqueue({mark_of(queue.name)}, std::move(done)); });
      if (!marked) return marked.error();
      const Result<Enqueued>& mark = marked->front();
      if (!mark && mark.error().code != ErrorCode::kAlreadyExists) return mark.error();
      if (mark) {
        marks_[queue.name] = mark->id;
      } else if (Status read = read_marks(); !read) {
        return read;
      }
    }
    if (Status paused = pause(from_, queue.name, true); !paused) return paused;
  }
  return {};
}

Status HeldQueues::release() {
  for (const auto& [queue, mark] : marks_) {
    if (!held_.contains(queue)) continue;
    if (Status open = pause(from_, queue, false); !open) return open;
    if (Status gone = forget(mark); !gone) return gone;
  }
  return {};
}

}  // namespace bide::move
