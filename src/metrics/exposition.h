// Exposition: numbers as Prometheus reads them, text format 0.0.4.
//
//   Exposition text;
//   text.family("bide_jobs_enqueued_total", "counter", "Jobs accepted.");
//   text.sample({{"queue", "mail"}}, 3);

#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/histogram.h"

namespace bide::metrics {

inline constexpr std::string_view kExpositionContentType = "text/plain; version=0.0.4; charset=utf-8";

class Exposition {
 public:
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::initializer_list<Label>;

  // All samples of a family follow it.
  void family(std::string_view name, std::string_view type, std::string_view help);

  void sample(Labels labels, double value);
  template <std::integral T>
  void sample(Labels labels, T value) {
    line({}, labels, {}, std::to_string(value));
  }
  void sample(const Histogram::Reading& reading) { sample({}, reading); }
  void sample(Labels labels, const Histogram::Reading& reading);

  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view suffix, Labels labels, Label extra, std::string_view value);

  std::string name_;
  std::string text_;
};

}  // namespace bide::metrics
