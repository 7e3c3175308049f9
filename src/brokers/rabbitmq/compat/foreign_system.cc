#include "brokers/rabbitmq/compat/foreign_system.h"

#include "core/number_text.h"
#include "core/quote.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

bool is_the_servers(std::string_view name) {
  return name == "CC" || name == "BCC" || name.starts_with("x-death") || name.starts_with("x-first-death-") ||
         name.starts_with("x-last-death-") || name == "x-delivery-count";
}

}  // namespace

Headers job_headers(const FieldTable& fields) {
  Headers headers;
  std::size_t bytes = 0;
  for (const auto& [name, field] : fields) {
    if (is_the_servers(name)) continue;
    std::string text;
    if (const std::string* own = field.text())
      text = *own;
    else if (const std::int64_t* number = field.number())
      text = std::to_string(*number);
    else if (const bool* flag = std::get_if<bool>(&field.value))
      text = *flag ? "true" : "false";
    else if (const double* real = std::get_if<double>(&field.value))
      text = core::format_number(*real);
    else
      continue;
    // What does not fit into a job's headers is still in the message.
    if (bytes + name.size() + text.size() > Limits::kHeaderBytes) continue;
    bytes += name.size() + text.size();
    headers.emplace_back(name, std::move(text));
  }
  return headers;
}

Status check_header_names(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (is_the_servers(name)) {
      return Error{ErrorCode::kInvalidArgument,
                   "header " + core::quoted(name) + " belongs to RabbitMQ; use another name"};
    }
    if (name.size() > 255) return Error{ErrorCode::kInvalidArgument, "a header's name has more than 255 bytes"};
  }
  return {};
}

JobId id_of(const AmqpMessage& message) {
  const Result<JobId> id = JobId::parse(message.message_id);
  return id ? *id : JobId();
}

}  // namespace bide::brokers::rabbitmq::compat
