#include "brokers/rabbitmq/delay_path.h"

#include <algorithm>

namespace bide::brokers::rabbitmq {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// To the wanted number of significant digits. Rounding up may carry, which makes the digits fewer, never more.
std::int64_t round_to_digits(std::int64_t value, int radix, int digits) {
  if (digits <= 0) return value;
  std::int64_t limit = 1;
  for (int i = 0; i < digits; ++i) limit *= radix;
  std::int64_t unit = 1;
  while (value / unit >= limit) unit *= radix;
  return round_up(value, unit);
}

}  // namespace

int DelayShape::levels() const {
  int count = 1;
  while (value(count) < kDelayLap.count()) ++count;
  return count;
}

std::int64_t DelayShape::value(int level) const {
  std::int64_t product = 1;
  for (int i = 0; i < level; ++i) product *= radix;
  return product;
}

DelayPath delay_path(const DelayShape& shape, Milliseconds delay) {
  DelayPath path;
  if (delay <= Milliseconds(0)) return path;
  const std::int64_t total = round_to_digits(round_up(delay.count(), std::max<std::int64_t>(1, shape.unit.count())),
                                             shape.radix, shape.digits);
  path.total = Milliseconds(total);
  path.laps = static_cast<int>(total / kDelayLap.count());
  std::int64_t rest = total % kDelayLap.count();

  // The level whose exchange the message is in: after the laps the highest, otherwise the one of the first digit.
  int from = path.laps > 0 ? shape.top() : -1;
  for (int level = shape.top(); level >= 0; --level) {
    const std::int64_t value = shape.value(level);
    const int digit = static_cast<int>(rest / value);
    rest %= value;
    if (digit == 0) continue;
    if (from < 0) from = level;
    path.hops.push_back({from, level, digit});
    from = level - 1;
  }
  path.leaves = from;
  return path;
}

Milliseconds before_worker(const DelayShape& shape, Milliseconds delay) {
  return shape.worker_wait > Milliseconds(0) ? delay - delay % shape.worker_wait : delay;
}

std::string hop_key(const DelayHop& hop) {
  return std::to_string(hop.from) + ">" + std::to_string(hop.level) + "." + std::to_string(hop.digit);
}

std::string leave_key(int level) { return std::to_string(level) + ">!"; }

}  // namespace bide::brokers::rabbitmq
