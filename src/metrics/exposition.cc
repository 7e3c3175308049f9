#include "metrics/exposition.h"

#include <cmath>
#include <cstddef>

#include "core/number_text.h"

namespace bide::metrics {
namespace {

void append_escaped(std::string& text, std::string_view value, bool quotes) {
  for (const char c : value) {
    if (c == '\\')
      text += "\\\\";
    else if (c == '\n')
      text += "\\n";
    else if (c == '"' && quotes)
      text += "\\\"";
    else
      text += c;
  }
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return core::format_number(value);
}

}  // namespace

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ");
  append_escaped(text_, help, false);
  text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void Exposition::sample(Labels labels, double value) { line({}, labels, {}, number_text(value)); }

void Exposition::sample(Labels labels, const Histogram::Reading& reading) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < reading.counts.size(); ++i) {
    below += reading.counts[i];
    const std::string bound = i < reading.bounds.size() ? number_text(reading.bounds[i]) : "+Inf";
    line("_bucket", labels, {"le", bound}, std::to_string(below));
  }
  line("_sum", labels, {}, number_text(reading.sum_seconds));
  line("_count", labels, {}, std::to_string(below));
}

void Exposition::line(std::string_view suffix, Labels labels, Label extra, std::string_view value) {
  text_.append(name_).append(suffix);
  char before = '{';
  const auto append = [&](const Label& label) {
    text_ += before;
    before = ',';
    text_.append(label.first).append("=\"");
    append_escaped(text_, label.second, true);
    text_ += '"';
  };
  for (const Label& label : labels) append(label);
  if (!extra.first.empty()) append(extra);
  if (before == ',') text_ += '}';
  text_.append(" ").append(value).append("\n");
}

}  // namespace bide::metrics
