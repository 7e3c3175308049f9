#include "brokers/rabbitmq/examine.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace bide::brokers::rabbitmq {

namespace {

constexpr int kMostRounds = 16;

// "'5'", "the value '5' of type 'long'" or "none".
void take_value(std::string_view text, std::string& value, std::string* type) {
  constexpr std::string_view kLong = "the value '";
  constexpr std::string_view kType = "' of type '";
  if (text.starts_with(kLong)) {
    text.remove_prefix(kLong.size());
    const std::size_t middle = text.rfind(kType);
    value = text.substr(0, middle);
    if (type != nullptr && middle != std::string_view::npos) {
      const std::string_view name = text.substr(middle + kType.size());
      *type = name.substr(0, name.find('\''));
    }
    return;
  }
  if (text.starts_with('\'')) {
    text.remove_prefix(1);
    value = text.substr(0, text.rfind('\''));
    return;
  }
  value = text;
}

std::optional<Field> to_field(const Difference& difference, const Field* wanted) {
  const std::string& text = difference.current;
  const bool is_text = difference.current_type.empty() ? wanted != nullptr && wanted->text() != nullptr
                                                       : difference.current_type == "longstr";
  if (is_text) return Field(text);
  if (text == "true" || text == "false") return Field(text == "true");
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Field(number);
}

}  // namespace

bool take_over(FieldTable& arguments, const Difference& difference) {
  const auto found = std::find_if(arguments.begin(), arguments.end(),
                                  [&](const auto& each) { return each.first == difference.argument; });
  if (difference.current == "none") {
    if (found == arguments.end()) return false;
    arguments.erase(found);
    return true;
  }
  // Anything else is not an argument: durable, type ...
  if (!difference.argument.starts_with("x-") && difference.argument != "alternate-exchange") return false;
  std::optional<Field> field = to_field(difference, found == arguments.end() ? nullptr : &found->second);
  if (!field) return false;
  if (found != arguments.end()) {
    found->second = std::move(*field);
  } else {
    arguments.emplace_back(difference.argument, std::move(*field));
  }
  return true;
}

std::optional<Difference> Difference::parse(std::string_view words) {
  constexpr std::string_view kStart = "inequivalent arg '";
  constexpr std::string_view kReceived = ": received ";
  constexpr std::string_view kCurrent = " but current is ";
  const std::size_t start = words.find(kStart);
  if (start == std::string_view::npos) return std::nullopt;
  words.remove_prefix(start + kStart.size());
  Difference difference;
  difference.argument = words.substr(0, words.find('\''));
  const std::size_t received = words.find(kReceived);
  const std::size_t current = words.rfind(kCurrent);
  if (received == std::string_view::npos || current == std::string_view::npos || current < received)
    return std::nullopt;
  take_value(words.substr(received + kReceived.size(), current - received - kReceived.size()), difference.wanted,
             nullptr);
  take_value(words.substr(current + kCurrent.size()), difference.current, &difference.current_type);
  return difference;
}

Status Examiner::open() {
  if (open_) return {};
  Status status = connection_.open_channel(channel_);
  open_ = status.has_value();
  return status;
}

Result<std::optional<QueueCounts>> Examiner::look_at(const std::string& queue) {
  if (Status status = open(); !status) return status.error();
  const Result<QueueCounts> counts = connection_.look_at_queue(channel_, queue);
  if (counts) return std::optional(*counts);
  open_ = false;
  if (!connection_.alive() || counts.error().code != ErrorCode::kNotFound) return counts.error();
  return std::optional<QueueCounts>();
}

Result<bool> Examiner::has_exchange(const std::string& name) {
  if (Status status = open(); !status) return status.error();
  const Status status = connection_.look_at_exchange(channel_, name);
  if (status) return true;
  open_ = false;
  if (!connection_.alive() || status.error().code != ErrorCode::kNotFound) return status.error();
  return false;
}

// `look` fills in what is seen and says whether it is there; `declare` asks.
template <class Spec, class Look, class Declare>
Result<Examined> Examiner::examine(Spec wanted, Look look, Declare declare) {
  Examined examined;
  for (int i = 0; i < kMostRounds; ++i) {
    const Result<bool> is_there = look(examined);
    if (!is_there) {
      // Locked by another connection, not to be read, or its leader is away: there, in some way.
      if (!connection_.alive()) return is_there.error();
      examined.presence = Presence::kUnknown;
      examined.words = is_there.error().message;
      return examined;
    }
    if (!*is_there) return Examined{};
    if (Status status = open(); !status) return status.error();
    const Status answer = declare(wanted);
    if (answer) {
      examined.all_known = true;
      break;
    }
    open_ = false;
    if (!connection_.alive()) return answer.error();
    if (examined.words.empty()) examined.words = answer.error().message;
    if (answer.error().code == ErrorCode::kPermissionDenied && examined.differences.empty()) {
      examined.presence = Presence::kUnknown;
      return examined;
    }
    examined.presence = Presence::kDiffers;
    const std::optional<Difference> difference = Difference::parse(answer.error().message);
    if (!difference) return examined;
    examined.differences.push_back(*difference);
    if (!take_over(wanted.arguments, *difference)) return examined;
  }
  if (examined.differences.empty()) examined.presence = Presence::kSame;
  return examined;
}

Result<Examined> Examiner::queue(const QueueSpec& wanted) {
  Result<Examined> answered = examine(
      wanted,
      [&](Examined& examined) -> Result<bool> {
        const Result<std::optional<QueueCounts>> counts = look_at(wanted.name);
        if (!counts) return counts.error();
        if (*counts) examined.counts = **counts;
        return counts->has_value();
      },
      [&](const QueueSpec& spec) -> Status {
        const Result<QueueCounts> answer = connection_.declare_queue(channel_, spec);
        if (!answer) return answer.error();
        return {};
      });
  if (!answered || answered->presence != Presence::kDiffers || !answered->all_known) return answered;
  const std::vector<Difference>& differences = answered->differences;
  const bool only_limits = std::all_of(differences.begin(), differences.end(), [&](const Difference& each) {
    return wanted.may_have_another(each.argument);
  });
  if (only_limits) answered->presence = Presence::kSame;
  return answered;
}

Result<Examined> Examiner::exchange(const ExchangeSpec& wanted) {
  return examine(
      wanted, [&](Examined&) { return has_exchange(wanted.name); },
      [&](const ExchangeSpec& spec) { return connection_.declare_exchange(channel_, spec); });
}

}  // namespace bide::brokers::rabbitmq
