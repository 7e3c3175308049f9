#include "support/simulated_disk.h"

#include "platform/disk.h"
#include "support/simulated_disk_state.h"

namespace bide::support {

using platform::File;
using platform::OpenMode;
using platform::Purpose;
using platform::system_error;

class SimulatedDisk::OpenFile final : public File {
 public:
  OpenFile(std::shared_ptr<State> state, NodeId node, std::string path, bool writable)
      : state_(std::move(state)), node_(node), life_(state_->life), path_(std::move(path)), writable_(writable) {}

  ~OpenFile() override {
    const std::lock_guard lock(state_->mutex);
    if (state_->life != life_ || --state_->handles[node_] > 0) return;
    state_->handles.erase(node_);
    if (!state_->names.visible_nodes().contains(node_)) state_->sweep();
  }

  Status write(std::uint64_t offset, std::string_view bytes) override {
    state_->announce(Operation::kWrite, path_, offset, bytes.size());
    const std::lock_guard lock(state_->mutex);
    if (const int dead = check()) return system_error(dead, "write", path_);
    if (bytes.size() > kMaximumFileBytes || offset > kMaximumFileBytes - bytes.size()) {
      return system_error(EFBIG, "write", path_);
    }
    const auto fault = state_->faults.next(Operation::kWrite);
    if (fault == Fault::kShortWrite && !bytes.empty()) bytes = bytes.substr(0, state_->random.next_below(bytes.size()));
    if (!fault || fault == Fault::kShortWrite) {
      const auto written = state_->change(node_).write(offset, bytes, state_->space, state_->random);
      if (written < bytes.size() && !fault) return system_error(ENOSPC, "write", path_);
    }
    if (fault) return system_error(*fault == Fault::kDiskFull ? ENOSPC : EIO, "write", path_);
    return {};
  }

  Result<std::size_t> read(std::uint64_t offset, char* into, std::size_t size) override {
    const std::lock_guard lock(state_->mutex);
    if (state_->life != life_) return system_error(EIO, "read", path_);
    if (const int failed = state_->count(Operation::kRead)) return system_error(failed, "read", path_);
    return state_->content(node_).read(offset, into, size);
  }

  Status sync() override {
    state_->announce(Operation::kSync, path_);
    const std::lock_guard lock(state_->mutex);
    if (state_->life != life_ || state_->halted) return system_error(EIO, "sync", path_);
    if (const int failed = state_->count(Operation::kSync)) {
      state_->change(node_).fail_sync(state_->random);
      return system_error(failed, "sync", path_);
    }
    state_->change(node_).sync();
    return {};
  }

  Status allocate(std::uint64_t offset, std::uint64_t size) override {
    state_->announce(Operation::kAllocate, path_, offset, size);
    const std::lock_guard lock(state_->mutex);
    if (const int dead = check()) return system_error(dead, "allocate", path_);
    if (size > kMaximumFileBytes || offset > kMaximumFileBytes - size) return system_error(EFBIG, "allocate", path_);
    if (const int failed = state_->count(Operation::kAllocate)) return system_error(failed, "allocate", path_);
    if (!state_->can_allocate) return system_error(EOPNOTSUPP, "allocate", path_);
    if (size > 0 && !state_->change(node_).allocate(offset, size, state_->space)) {
      return system_error(ENOSPC, "allocate", path_);
    }
    return {};
  }

  Status truncate(std::uint64_t size) override {
    state_->announce(Operation::kTruncate, path_, 0, size);
    const std::lock_guard lock(state_->mutex);
    if (const int dead = check()) return system_error(dead, "truncate", path_);
    if (size > kMaximumFileBytes) return system_error(EFBIG, "truncate", path_);
    if (const int failed = state_->count(Operation::kTruncate)) return system_error(failed, "truncate", path_);
    state_->change(node_).truncate(size, state_->space, state_->recycled);
    return {};
  }

  Result<std::uint64_t> size() override {
    const std::lock_guard lock(state_->mutex);
    if (state_->life != life_ || state_->halted) return system_error(EIO, "measure", path_);
    return state_->content(node_).size();
  }

 private:
  int check() const {
    if (state_->life != life_ || state_->halted) return EIO;
    return writable_ ? 0 : EBADF;
  }

  const std::shared_ptr<State> state_;
  const NodeId node_;
  const std::uint64_t life_;
  const std::string path_;
  const bool writable_;
};

class SimulatedDisk::HeldLock final : public platform::DirectoryLock {
 public:
  HeldLock(std::shared_ptr<State> state, NodeId directory)
      : state_(std::move(state)), directory_(directory), life_(state_->life) {}
  ~HeldLock() override {
    const std::lock_guard lock(state_->mutex);
    if (state_->life == life_) state_->locks.erase(directory_);
  }

 private:
  const std::shared_ptr<State> state_;
  const NodeId directory_;
  const std::uint64_t life_;
};

SimulatedDisk::SimulatedDisk(std::uint64_t seed) : state_(std::make_shared<State>(seed)) {}
SimulatedDisk::SimulatedDisk(std::shared_ptr<State> state) : state_(std::move(state)) {}
SimulatedDisk::~SimulatedDisk() = default;

Result<std::unique_ptr<File>> SimulatedDisk::open(const std::string& path, OpenMode mode) {
  const auto purpose = mode == OpenMode::kCreate ? Purpose::kCreate : Purpose::kUse;
  if (mode == OpenMode::kCreate) {
    std::unique_lock lock(state_->mutex);
    const auto place = state_->names.find(path);
    lock.unlock();
    if (place.error == 0 && place.node == 0) state_->announce(Operation::kCreate, path);
  }
  const std::lock_guard lock(state_->mutex);
  if (state_->halted) return system_error(EIO, "open", path);
  const auto place = state_->names.find(path);
  if (place.error != 0) return system_error(place.error, "open", path, purpose);
  NodeId node = place.node;
  if (node != 0 && state_->names.is_directory(node)) return system_error(EISDIR, "open", path, purpose);
  if (node == 0 && mode != OpenMode::kCreate) return system_error(ENOENT, "open", path);
  if (node == 0) {
    if (const int failed = state_->count(Operation::kCreate)) return system_error(failed, "open", path, purpose);
    node = state_->names.create_file(place);
    state_->add_file(node);
  }
  state_->handles[node] += 1;
  return std::unique_ptr<File>(std::make_unique<OpenFile>(state_, node, path, mode != OpenMode::kReadOnly));
}

Result<std::vector<std::string>> SimulatedDisk::list(const std::string& directory) {
  const std::lock_guard lock(state_->mutex);
  if (state_->halted) return system_error(EIO, "list", directory);
  const auto place = state_->names.find(directory);
  if (place.error != 0 || place.node == 0) return system_error(place.error ? place.error : ENOENT, "list", directory);
  if (!state_->names.is_directory(place.node)) return system_error(ENOTDIR, "list", directory);
  return state_->names.list(place.node);
}

Result<bool> SimulatedDisk::exists(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  if (state_->halted) return system_error(EIO, "look for", path);
  const auto place = state_->names.find(path);
  return place.error == 0 && place.node != 0;
}

Status SimulatedDisk::rename(const std::string& from, const std::string& to) {
  state_->announce(Operation::kRename, from);
  const std::lock_guard lock(state_->mutex);
  int failed = state_->count(Operation::kRename);
  if (failed == 0) failed = state_->names.rename(state_->names.find(from), state_->names.find(to));
  if (failed != 0) return platform::rename_error(failed, from, to);
  state_->sweep();
  return {};
}

Status SimulatedDisk::remove(const std::string& path) {
  state_->announce(Operation::kRemove, path);
  const std::lock_guard lock(state_->mutex);
  int failed = state_->count(Operation::kRemove);
  if (failed == 0) failed = state_->names.remove(state_->names.find(path));
  if (failed != 0) return system_error(failed, "remove", path);
  state_->sweep();
  return {};
}

Status SimulatedDisk::make_directory(const std::string& path) {
  state_->announce(Operation::kMakeDirectory, path);
  const std::lock_guard lock(state_->mutex);
  int failed = state_->count(Operation::kMakeDirectory);
  const auto place = state_->names.find(path);
  if (failed == 0) failed = place.error;
  if (failed == 0 && place.node != 0) {
    if (state_->names.is_directory(place.node)) return {};
    failed = EEXIST;
  }
  if (failed != 0) return system_error(failed, "make directory", path, Purpose::kCreate);
  state_->names.make_directory(place);
  return {};
}

Status SimulatedDisk::sync_directory(const std::string& path) {
  state_->announce(Operation::kSyncDirectory, path);
  const std::lock_guard lock(state_->mutex);
  if (state_->halted) return system_error(EIO, "sync", path);
  const auto place = state_->names.find(path);
  if (place.error != 0 || place.node == 0) return system_error(place.error ? place.error : ENOENT, "open", path);
  if (!state_->names.is_directory(place.node)) return system_error(ENOTDIR, "open", path);
  if (const int failed = state_->count(Operation::kSyncDirectory)) {
    state_->names.fail_sync(place.node);
    return system_error(failed, "sync", path);
  }
  state_->names.sync(place.node);
  state_->sweep();
  return {};
}

Result<std::unique_ptr<platform::DirectoryLock>> SimulatedDisk::lock(const std::string& directory) {
  // The same file as on a real disk, so that the directory looks the same; nobody needs it to be durable.
  const std::string path = directory + "/" + platform::kLockFileName;
  const auto file = open(path, OpenMode::kCreate);
  const std::lock_guard lock(state_->mutex);
  const auto place = state_->names.find(path);
  if (place.error != 0) return system_error(place.error, "open", path);
  if (!file) return file.error();
  if (!state_->locks.insert(place.directory).second) return platform::directory_busy(directory, "1");
  return std::unique_ptr<platform::DirectoryLock>(std::make_unique<HeldLock>(state_, place.directory));
}

void SimulatedDisk::crash(const CrashOptions& options) {
  const std::lock_guard lock(state_->mutex);
  state_->crash(options);
}

void SimulatedDisk::halt() {
  const std::lock_guard lock(state_->mutex);
  state_->halted = true;
}

std::unique_ptr<SimulatedDisk> SimulatedDisk::clone() const {
  const std::lock_guard lock(state_->mutex);
  auto copy = std::make_shared<State>(0);
  copy->random = state_->random;
  copy->names = state_->names;
  copy->nodes = state_->nodes;
  copy->space = state_->space;
  copy->recycled = state_->recycled;
  copy->operations = state_->operations;
  copy->can_allocate = state_->can_allocate;
  // From here on neither side owns the nodes: whoever writes first makes a copy.
  state_->token.renew();
  copy->sweep();
  return std::unique_ptr<SimulatedDisk>(new SimulatedDisk(std::move(copy)));
}

void SimulatedDisk::on_operation(Hook hook) {
  const std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}

std::uint64_t SimulatedDisk::operation_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->operations;
}

std::uint64_t SimulatedDisk::operation_count(Operation operation) const {
  const std::lock_guard lock(state_->mutex);
  return state_->faults.count(operation);
}

void SimulatedDisk::plan(const PlannedFault& fault) {
  const std::lock_guard lock(state_->mutex);
  state_->faults.add(fault);
}

std::uint64_t SimulatedDisk::faults_fired() const {
  const std::lock_guard lock(state_->mutex);
  return state_->faults.fired();
}

std::uint64_t SimulatedDisk::faults_outstanding() const {
  const std::lock_guard lock(state_->mutex);
  return state_->faults.outstanding();
}

void SimulatedDisk::refuse_allocate() {
  const std::lock_guard lock(state_->mutex);
  state_->can_allocate = false;
}

void SimulatedDisk::set_capacity(std::uint64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->space.capacity_bytes = bytes;
}

std::uint64_t SimulatedDisk::used_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->space.used_bytes;
}

std::string SimulatedDisk::contents(const std::string& path) const {
  const std::lock_guard lock(state_->mutex);
  const auto& content = state_->content(state_->file_at(path));
  std::string bytes(content.size(), '\0');
  content.read(0, bytes.data(), bytes.size());
  return bytes;
}

std::string SimulatedDisk::durable_contents(const std::string& path) const {
  const std::lock_guard lock(state_->mutex);
  const auto& content = state_->content(state_->file_at(path));
  std::string bytes(content.durable_size(), '\0');
  content.read_durable(0, bytes.data(), bytes.size());
  return bytes;
}

void SimulatedDisk::overwrite(const std::string& path, std::uint64_t offset, std::string_view bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->change(state_->file_at(path)).overwrite(offset, bytes);
  state_->sweep();
}

void SimulatedDisk::flip_bit(const std::string& path, std::uint64_t offset, unsigned bit) {
  const std::lock_guard lock(state_->mutex);
  const auto node = state_->file_at(path);
  platform::require(offset < state_->content(node).size() && bit < 8, "the bit to flip lies in the file");
  state_->change(node).flip_bit(offset, bit);
}

void SimulatedDisk::truncate(const std::string& path, std::uint64_t size) {
  const std::lock_guard lock(state_->mutex);
  state_->change(state_->file_at(path)).cut(size);
  state_->sweep();
}

std::vector<std::string> SimulatedDisk::files() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> paths;
  for (const auto& [path, node] : state_->names.files()) paths.push_back(path);
  return paths;
}

std::uint64_t SimulatedDisk::fingerprint() const {
  const std::lock_guard lock(state_->mutex);
  std::uint64_t hash = 0;
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  const auto mix_path = [&mix](const std::string& path) {
    for (const char c : path) mix(static_cast<unsigned char>(c));
    mix(path.size());
  };
  for (const auto& path : state_->names.durable_directories()) mix_path(path);
  for (const auto& [path, node] : state_->names.durable_files()) {
    mix_path(path);
    mix(state_->content(node).fingerprint());
  }
  return hash;
}

}  // namespace bide::support
