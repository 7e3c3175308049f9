// bide capabilities: what brokers can do, as they declare it.

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/url_escape.h"
#include "wire/info_json.h"

namespace bide::cli {

namespace {

using Row = wire::Field<Capabilities>;

// Rows of yes and no. Of virtual time only tests want to know.
std::vector<Row> rows() {
  std::vector<Row> rows;
  for (const Row& row : wire::rows_of<Capabilities>()) {
    if (row.type.type == wire::kBooleanType.type && row.name != "virtual_time") rows.push_back(row);
  }
  return rows;
}

bool has(const Row& row, const Capabilities& can) {
  std::string text;
  wire::JsonWriter out(text);
  out.begin_object();
  row.write(out, row, can);
  out.end_object();
  return text.ends_with("true}");
}

int capabilities(const Invocation& call) {
  std::vector<std::string> urls = call.values(kUrlFlag.name);
  if (urls.empty()) urls.push_back(url_of(call));
  std::vector<Capabilities> brokers;
  for (const std::string& url : urls) brokers.push_back(open_client(url, Missing::kRefuse).broker().capabilities());
  JsonArray json;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    json.add(JsonObject().add("url", core::without_secrets(urls[i])).raw("can", wire::capabilities_json(brokers[i])));
  }
  std::vector<std::string> headings = {""};
  for (const std::string& url : urls) headings.push_back(url.substr(0, url.find(':')));
  headings.emplace_back("");
  Table table(std::move(headings));
  for (const Row& row : rows()) {
    std::vector<std::string> cells = {std::string(row.name)};
    for (const Capabilities& can : brokers) cells.emplace_back(has(row, can) ? "yes" : "-");
    cells.emplace_back(row.text);
    table.row(std::move(cells));
  }
  std::string text = table.text();
  for (std::size_t i = 0; i < urls.size(); ++i) {
    if (brokers[i].why_not.empty()) continue;
    text += "\n" + for_people(urls[i].substr(0, urls[i].find(':'))) + ": " + for_people(brokers[i].why_not) + "\n";
  }
  print(call, JsonObject().add("brokers", json), text);
  return kOk;
}

}  // namespace

std::vector<Command> capability_commands() {
  constexpr Flag kUrlsFlag = {kUrlFlag.name, kUrlFlag.value, "the broker; given several times, they are compared", true};
  return {{.path = "capabilities",
           .summary = "Say what a broker can do, or compare several",
           .flags = {kUrlsFlag, kJsonFlag},
           .run = capabilities}};
}

}  // namespace bide::cli
