// TopView: what `bide top` shows, as text of any width: rates with their course over the last minutes, queues, and what runs.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "bide/inspector.h"
#include "cli/json.h"

namespace bide::cli {

// One look at the broker.
struct TopLook {
  Time at = {};
  double seconds = 1;  // Since the look before.
  std::vector<QueueInfo> queues = {};
  AuditReport audit = {};
  std::vector<JobInfo> running = {};  // Some of them.
};

class TopView {
 public:
  enum class Order { kName, kReady, kRunning, kDead, kLate };
  static constexpr std::size_t kOrders = 5;

  void add(TopLook look);
  void set_order(Order order) { order_ = order; }
  void next_order() { order_ = static_cast<Order>((static_cast<std::size_t>(order_) + 1) % kOrders); }

  // At most so many columns and lines; 0: any number. `keys`: with a line that says which ones there are.
  std::string text(std::size_t width, std::size_t height, bool keys) const;
  JsonObject json() const;

 private:
  static constexpr std::size_t kCourse = 120;  // Looks that are remembered.

  struct Rates {
    double in = 0;
    double done = 0;
    double dead = 0;  // Jobs that died, and were not replayed or deleted since.
    double ready = 0;
  };
  struct Load {
    std::string name;
    std::uint64_t jobs = 0;
  };

  std::vector<QueueInfo> sorted_queues() const;
  std::vector<Load> running_by(bool kind) const;

  Order order_ = Order::kName;
  TopLook last_;
  bool any_ = false;
  std::deque<Rates> course_;
};

// Eight heights, the highest value at the top; the newest at the right.
std::string sparkline(const std::vector<double>& values, std::size_t width);

}  // namespace bide::cli
