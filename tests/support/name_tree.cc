#include "support/name_tree.h"

#include <algorithm>
#include <cerrno>

namespace bide::support {
namespace {

constexpr NodeId kRoot = 1;

std::vector<std::string> components_of(std::string_view path) {
  std::vector<std::string> components;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const auto component = path.substr(0, slash);
    if (!component.empty() && component != ".") components.emplace_back(component);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return components;
}

}  // namespace

NameTree::NameTree() : last_node_(kRoot) { directories_[kRoot]; }

NameTree::Place NameTree::find(std::string_view path) const {
  const auto components = components_of(path);
  Place place{.node = kRoot};
  for (std::size_t i = 0; i < components.size(); ++i) {
    const auto directory = directories_.find(place.node);
    if (directory == directories_.end()) return {.error = place.node == 0 ? ENOENT : ENOTDIR};
    const auto entry = directory->second.current.find(components[i]);
    place.directory = place.node;
    place.name = components[i];
    place.node = entry == directory->second.current.end() ? 0 : entry->second;
  }
  return place;
}

std::vector<std::string> NameTree::list(NodeId directory) const {
  std::vector<std::string> names;
  for (const auto& [name, node] : directories_.at(directory).current) names.push_back(name);
  return names;
}

NodeId NameTree::add(const Place& place) {
  const NodeId node = ++last_node_;
  directories_.at(place.directory).current[place.name] = node;
  waiting_.push_back({.from = {}, .to = {place.directory, place.name}, .node = node});
  return node;
}

NodeId NameTree::create_file(const Place& place) { return add(place); }

NodeId NameTree::make_directory(const Place& place) {
  const NodeId node = add(place);
  directories_[node];
  return node;
}

bool NameTree::lies_within(NodeId inner, NodeId outer) const {
  if (inner == outer) return true;
  const auto directory = directories_.find(outer);
  if (directory == directories_.end()) return false;
  return std::any_of(directory->second.current.begin(), directory->second.current.end(),
                     [&](const auto& entry) { return lies_within(inner, entry.second); });
}

int NameTree::rename(const Place& from, const Place& to) {
  if (from.error != 0 || from.node == 0) return from.error != 0 ? from.error : ENOENT;
  if (to.error != 0) return to.error;
  if (from.directory == 0 || to.directory == 0) return EBUSY;
  if (from.node == to.node) return 0;
  if (is_directory(from.node) && lies_within(to.directory, from.node)) return EINVAL;
  if (to.node != 0 && is_directory(from.node) != is_directory(to.node)) return is_directory(to.node) ? EISDIR : ENOTDIR;
  if (to.node != 0 && is_directory(to.node) && !directories_.at(to.node).current.empty()) return ENOTEMPTY;
  directories_.at(from.directory).current.erase(from.name);
  directories_.at(to.directory).current[to.name] = from.node;
  waiting_.push_back({.from = {from.directory, from.name}, .to = {to.directory, to.name}, .node = from.node});
  return 0;
}

int NameTree::remove(const Place& place) {
  if (place.error != 0 || place.node == 0) return place.error != 0 ? place.error : ENOENT;
  if (is_directory(place.node)) return EISDIR;
  directories_.at(place.directory).current.erase(place.name);
  waiting_.push_back({.from = {place.directory, place.name}, .to = {}, .node = place.node});
  return 0;
}

void NameTree::apply(const Change& change) {
  if (change.from.first != 0) {
    auto& entries = directories_.at(change.from.first).durable;
    const auto entry = entries.find(change.from.second);
    if (entry != entries.end() && entry->second == change.node) entries.erase(entry);
  }
  if (change.to.first != 0) directories_.at(change.to.first).durable[change.to.second] = change.node;
}

void NameTree::sync(NodeId directory) {
  // A change cannot be on the medium without the earlier changes of the names that it touches.
  std::set<Name> needed;
  std::vector<bool> chosen(waiting_.size());
  for (std::size_t i = waiting_.size(); i-- > 0;) {
    const Change& change = waiting_[i];
    chosen[i] =
        (change.touches(directory) && !change.abandoned) || needed.contains(change.from) || needed.contains(change.to);
    if (!chosen[i]) continue;
    if (change.from.first != 0) needed.insert(change.from);
    if (change.to.first != 0) needed.insert(change.to);
  }
  std::vector<Change> rest;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (chosen[i]) {
      apply(waiting_[i]);
    } else {
      rest.push_back(std::move(waiting_[i]));
    }
  }
  waiting_ = std::move(rest);
}

void NameTree::fail_sync(NodeId directory) {
  for (Change& change : waiting_) change.abandoned = change.abandoned || change.touches(directory);
}

void NameTree::lose_unsynced() { take_durable_view(); }

void NameTree::crash(const CrashOdds& odds, SeededRandom& random) {
  // A journalling file system loses a tail of the changes; others may lose any of them.
  const bool tail_only = random.chance(0.5);
  bool lost_one = false;
  std::set<Name> lost;
  for (const Change& change : waiting_) {
    const bool follows = lost.contains(change.from) || lost.contains(change.to) || (tail_only && lost_one);
    if (!follows && random.chance(odds.kept)) {
      apply(change);
      continue;
    }
    lost_one = true;
    if (change.from.first != 0) lost.insert(change.from);
    if (change.to.first != 0) lost.insert(change.to);
  }
  take_durable_view();
}

void NameTree::take_durable_view() {
  waiting_.clear();
  std::set<NodeId> reached = {kRoot};
  std::vector<NodeId> open = {kRoot};
  while (!open.empty()) {
    auto& directory = directories_.at(open.back());
    open.pop_back();
    directory.current = directory.durable;
    for (const auto& [name, node] : directory.current) {
      if (is_directory(node) && reached.insert(node).second) open.push_back(node);
    }
  }
  std::erase_if(directories_, [&](const auto& directory) { return !reached.contains(directory.first); });
}

std::vector<std::pair<std::string, NodeId>> NameTree::walk(Entries Directory::*view) const {
  std::vector<std::pair<std::string, NodeId>> found;
  std::vector<std::pair<std::string, NodeId>> open = {{"", kRoot}};
  while (!open.empty()) {
    const auto [path, directory] = open.back();
    open.pop_back();
    for (const auto& [name, node] : directories_.at(directory).*view) {
      (is_directory(node) ? open : found).emplace_back(path + "/" + name, node);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> NameTree::durable_directories() const {
  std::vector<std::string> paths;
  std::vector<std::pair<std::string, NodeId>> open = {{"", kRoot}};
  while (!open.empty()) {
    const auto [path, directory] = open.back();
    open.pop_back();
    for (const auto& [name, node] : directories_.at(directory).durable) {
      if (!is_directory(node)) continue;
      paths.push_back(path + "/" + name);
      open.emplace_back(path + "/" + name, node);
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::set<NodeId> NameTree::visible_nodes() const {
  std::set<NodeId> nodes;
  for (const auto& [id, directory] : directories_) {
    for (const auto& [name, node] : directory.current) nodes.insert(node);
  }
  return nodes;
}

std::set<NodeId> NameTree::possible_nodes() const {
  std::set<NodeId> nodes = visible_nodes();
  for (const auto& [id, directory] : directories_) {
    for (const auto& [name, node] : directory.durable) nodes.insert(node);
  }
  for (const auto& change : waiting_) nodes.insert(change.node);
  return nodes;
}

}  // namespace bide::support
