// Labelled<T>: a T for each value of a label, and no more of them than allowed: the values that come after that share
// one, kOverflowLabel. So a user who invents queue names costs neither us nor Prometheus any memory.
//
// Safe to use from any thread. What at() returned stays where it is for as long as the family lives.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

namespace bide::metrics {

// No queue and no kind may have such a name.
inline constexpr std::string_view kOverflowLabel = "(other)";

template <class T>
class Labelled {
 public:
  explicit Labelled(std::size_t most) : most_(most) {}

  T& at(std::string_view value) { return *find(value).second; }
  // As which label the value is shown.
  std::string_view label_of(std::string_view value) { return find(value).first; }

  // In the order of the values.
  template <class Use>
  void each(Use use) const {
    std::shared_lock lock(mutex_);
    for (const auto& [value, one] : all_) use(std::string_view(value), *one);
  }

 private:
  using All = std::map<std::string, std::unique_ptr<T>, std::less<>>;

  std::pair<std::string_view, T*> find(std::string_view value) {
    {
      std::shared_lock lock(mutex_);
      if (const auto found = all_.find(value); found != all_.end()) return {found->first, found->second.get()};
    }
    std::unique_lock lock(mutex_);
    auto found = all_.find(value);
    if (found == all_.end()) {
      const bool fits = all_.size() - all_.count(kOverflowLabel) < most_;
      found = all_.try_emplace(std::string(fits ? value : kOverflowLabel)).first;
      if (!found->second) found->second = std::make_unique<T>();
    }
    return {found->first, found->second.get()};
  }

  const std::size_t most_;
  mutable std::shared_mutex mutex_;  // Guards everything below.
  All all_;
};

}  // namespace bide::metrics
