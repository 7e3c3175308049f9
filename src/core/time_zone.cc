#include "core/time_zone.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/text.h"

namespace bide::core {
namespace {

using std::chrono::days;
using std::chrono::seconds;

constexpr std::int64_t kDay = 24 * 60 * 60;
// No clock is further from UTC (RFC 9636), and none is set by more than the difference of two.
constexpr std::int32_t kMostAhead = 26 * 60 * 60;

Error zone_refusal(const char* why) {
  return {ErrorCode::kInvalidArgument, std::string("the data of the time zone cannot be used: ") + why};
}

// Numbers of a TZif file: the highest byte first.
template <class T>
T load_big_endian(std::string_view bytes, std::size_t at) {
  std::make_unsigned_t<T> value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<std::make_unsigned_t<T>>(value << 8 | static_cast<std::uint8_t>(bytes[at + i]));
  }
  return static_cast<T>(value);
}

struct TzifHead {
  static constexpr std::size_t kSize = 44;
  char version = 0;
  std::uint64_t utc_flags = 0, standard_flags = 0, leaps = 0, times = 0, types = 0, name_bytes = 0;

  static std::optional<TzifHead> of(std::string_view bytes) {
    if (bytes.size() < kSize || !bytes.starts_with("TZif")) return std::nullopt;
    TzifHead head{.version = bytes[4]};
    std::size_t at = 20;
    for (std::uint64_t* count :
         {&head.utc_flags, &head.standard_flags, &head.leaps, &head.times, &head.types, &head.name_bytes}) {
      *count = load_big_endian<std::uint32_t>(bytes, at);
      at += 4;
    }
    return head;
  }
  std::uint64_t block_bytes(std::uint64_t time_bytes) const {
    return times * (time_bytes + 1) + types * 6 + name_bytes + leaps * (time_bytes + 4) + standard_flags + utc_flags;
  }
};

int year_of(std::int64_t at_s) {
  const auto day = std::chrono::floor<days>(sys_seconds(seconds(at_s)));
  return static_cast<int>(std::chrono::year_month_day(day).year());
}

}  // namespace

// Each function takes something from the front; after the first that cannot, ok is false.
struct TimeZone::FooterReader {
  std::string_view rest;
  bool ok = true;

  bool take(char c) {
    if (!rest.starts_with(c)) return false;
    rest.remove_prefix(1);
    return true;
  }
  void name() {
    const bool in_brackets = take('<');
    std::size_t size = 0;
    while (size < rest.size() &&
           (in_brackets ? rest[size] != '>' : lower_case(rest[size]) >= 'a' && lower_case(rest[size]) <= 'z')) {
      ++size;
    }
    ok = ok && size >= 1;
    rest.remove_prefix(size);
    if (in_brackets) ok = take('>') && ok;
  }
  int number(int most) {
    int value = 0;
    std::size_t digits = 0;
    for (; digits < 4 && digits < rest.size() && is_digit(rest[digits]); ++digits)
      value = value * 10 + (rest[digits] - '0');
    rest.remove_prefix(digits);
    ok = ok && digits != 0 && value <= most;
    return value;
  }
  // [+-]hours[:minutes[:seconds]]
  std::int32_t span(int most_hours) {
    const bool negative = take('-');
    if (!negative) take('+');
    std::int32_t total = number(most_hours) * 3600;
    if (take(':')) total += number(59) * 60;
    if (take(':')) total += number(59);
    return negative ? -total : total;
  }
  YearlyChange change() {
    YearlyChange change;
    ok = take(',') && ok;
    if (take('M')) {
      change.day = YearlyChange::Day::kWeekday;
      change.month = number(12);
      ok = take('.') && ok;
      change.week = number(5);
      ok = take('.') && ok;
      change.number = number(6);
      ok = ok && change.month >= 1 && change.week >= 1;
    } else if (take('J')) {
      change.day = YearlyChange::Day::kWithoutLeapDay;
      change.number = number(365);
      ok = ok && change.number >= 1;
    } else {
      change.number = number(365);
    }
    if (take('/')) change.time_s = span(167);
    return change;
  }
};

std::optional<TimeZone::Footer> TimeZone::parse_footer(std::string_view text) {
  if (text.empty()) return Footer();
  FooterReader reader{.rest = text};
  Footer footer;
  reader.name();
  footer.standard_s = -reader.span(24);  // POSIX counts to the west.
  if (!reader.rest.empty() && reader.ok) {
    reader.name();
    const bool is_given = reader.ok && !reader.rest.empty() && reader.rest.front() != ',';
    footer.summer_s = is_given ? -reader.span(24) : footer.standard_s + 3600;
    const YearlyChange begin = reader.change();
    footer.summer.emplace(begin, reader.change());
  }
  if (!reader.ok || !reader.rest.empty()) return std::nullopt;
  return footer;
}

std::int64_t TimeZone::YearlyChange::in_year(int year) const {
  using namespace std::chrono;
  const std::chrono::year y(year);
  sys_days date = y / January / 1;
  switch (day) {
    case Day::kWithLeapDay:
      date += days(number);
      break;
    case Day::kWithoutLeapDay:
      date += days(number - 1 + (y.is_leap() && number >= 60 ? 1 : 0));
      break;
    case Day::kWeekday: {
      const std::chrono::month m(static_cast<unsigned>(month));
      const std::chrono::weekday w(static_cast<unsigned>(number));
      date = week == 5 ? sys_days(y / m / w[last]) : sys_days(y / m / w[static_cast<unsigned>(week)]);
      break;
    }
  }
  return sys_seconds(date).time_since_epoch().count() + time_s;
}

Result<TimeZone> TimeZone::parse(std::string_view tzif) {
  const auto first = TzifHead::of(tzif);
  if (!first) return zone_refusal("it is no TZif file");
  if (first->version < '2') return zone_refusal("it is a TZif file of version 1, which ends in 2038");
  const std::uint64_t skipped = TzifHead::kSize + first->block_bytes(4);
  if (skipped > tzif.size()) return zone_refusal("it is cut off");
  tzif.remove_prefix(skipped);
  const auto head = TzifHead::of(tzif);
  if (!head) return zone_refusal("its second part is missing");
  if (head->leaps != 0) return zone_refusal("it counts leap seconds, which the clock of this system does not");
  if (tzif.size() < TzifHead::kSize + head->block_bytes(8)) return zone_refusal("it is cut off");
  if (head->types == 0) return zone_refusal("it has no offset");

  const std::size_t times = TzifHead::kSize;
  const std::size_t indexes = times + head->times * 8;
  const std::size_t types = indexes + head->times;
  const auto ahead_of = [&](std::size_t type) { return load_big_endian<std::int32_t>(tzif, types + type * 6); };
  for (std::size_t type = 0; type < head->types; ++type) {
    if (ahead_of(type) > kMostAhead || ahead_of(type) < -kMostAhead)
      return zone_refusal("an offset is longer than a day");
  }
  TimeZone zone;
  zone.first_s_ = ahead_of(0);
  for (std::size_t i = 0; i < head->times; ++i) {
    const auto type = static_cast<std::uint8_t>(tzif[indexes + i]);
    if (type >= head->types) return zone_refusal("a change names an offset that is not there");
    const Offset offset{load_big_endian<std::int64_t>(tzif, times + i * 8), ahead_of(type)};
    if (i != 0 && offset.begin_s <= zone.known_.back().begin_s) return zone_refusal("its changes are not in order");
    zone.known_.push_back(offset);
  }

  std::string_view footer = tzif.substr(TzifHead::kSize + head->block_bytes(8));
  if (!footer.starts_with('\n') || footer.find('\n', 1) == std::string_view::npos)
    return zone_refusal("it has no footer");
  footer = footer.substr(1, footer.find('\n', 1) - 1);
  const auto parsed = parse_footer(footer);
  if (!parsed) return zone_refusal("its footer is not understood");
  zone.footer_ = *parsed;
  if (footer.empty()) zone.footer_.standard_s = zone.known_.empty() ? zone.first_s_ : zone.known_.back().ahead_s;
  return zone;
}

std::vector<TimeZone::Offset> TimeZone::changes(std::int64_t from_s, std::int64_t until_s) const {
  std::vector<Offset> found;
  const auto after = [](std::int64_t at_s, const Offset& change) { return at_s < change.begin_s; };
  const auto begin = std::upper_bound(known_.begin(), known_.end(), from_s, after);
  const auto end = std::upper_bound(begin, known_.end(), until_s, after);
  if (begin == known_.begin()) {
    found.push_back(
        {std::numeric_limits<std::int64_t>::min(), known_.empty() && !footer_.summer ? footer_.standard_s : first_s_});
  } else {
    found.push_back(begin[-1]);
  }
  found.insert(found.end(), begin, end);
  if (end != known_.end() || !footer_.summer) return found;

  // The footer holds from the last known change on; its years overlap with that one's.
  const std::int64_t last_s = known_.empty() ? std::numeric_limits<std::int64_t>::min() : known_.back().begin_s;
  std::vector<Offset> yearly;
  const auto& [summer_begin, summer_end] = *footer_.summer;
  for (int year = year_of(std::max(from_s, last_s)) - 1; year <= year_of(until_s) + 1; ++year) {
    // In this order, so that a summer that lasts all year begins again at the moment at which it ends.
    yearly.push_back({summer_end.in_year(year) - footer_.summer_s, footer_.standard_s});
    yearly.push_back({summer_begin.in_year(year) - footer_.standard_s, footer_.summer_s});
  }
  std::stable_sort(yearly.begin(), yearly.end(),
                   [](const Offset& a, const Offset& b) { return a.begin_s < b.begin_s; });
  for (const Offset& change : yearly) {
    if (change.begin_s <= last_s || change.begin_s > until_s) continue;
    if (change.begin_s <= from_s) found.clear();
    found.push_back(change);
  }
  return found;
}

local_seconds TimeZone::local(sys_seconds at) const {
  const std::int64_t at_s = at.time_since_epoch().count();
  return local_seconds(seconds(at_s + changes(at_s, at_s).back().ahead_s));
}

sys_seconds TimeZone::first_at(local_seconds time) const {
  const std::int64_t time_s = time.time_since_epoch().count();
  const std::vector<Offset> found = changes(time_s - 2 * kDay, time_s + 2 * kDay);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::int64_t first_s = std::max(time_s - found[i].ahead_s, found[i].begin_s);
    if (i + 1 == found.size() || first_s < found[i + 1].begin_s) return sys_seconds(seconds(first_s));
  }
  return sys_seconds(seconds(time_s));  // Not reached: there is always one.
}

local_seconds TimeZone::not_yet_shown(sys_seconds at) const {
  const std::int64_t at_s = at.time_since_epoch().count();
  const std::vector<Offset> found = changes(at_s - 2 * kDay, at_s);
  std::int64_t shown_s = at_s + found.back().ahead_s + 1;
  for (std::size_t i = 0; i + 1 < found.size(); ++i)
    shown_s = std::max(shown_s, found[i + 1].begin_s + found[i].ahead_s);
  return local_seconds(seconds(shown_s));
}

}  // namespace bide::core
