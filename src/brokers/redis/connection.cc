#include "brokers/redis/connection.h"

#include <hiredis/hiredis.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <utility>

namespace bide::brokers::redis {

namespace {

timeval to_timeval(Milliseconds time) {
  return {.tv_sec = static_cast<time_t>(time.count() / 1000), .tv_usec = static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

// Answers are read straight into ours. An object below an array lives in the array; the outermost one is allocated.
Reply* make(const redisReadTask* task) {
  if (task->parent == nullptr) return new Reply;
  return &static_cast<Reply*>(task->parent->obj)->items[static_cast<std::size_t>(task->idx)];
}

void* create_string(const redisReadTask* task, char* bytes, std::size_t size) {
  Reply* reply = make(task);
  reply->kind = task->type == REDIS_REPLY_ERROR ? Reply::Kind::kError : Reply::Kind::kText;
  reply->text.assign(bytes, size);
  return reply;
}
template <class Size>  // int before hiredis 1.0.
void* create_array(const redisReadTask* task, Size size) {
  Reply* reply = make(task);
  reply->kind = Reply::Kind::kArray;
  reply->items.resize(static_cast<std::size_t>(size));
  return reply;
}
void* create_integer(const redisReadTask* task, long long value) {
  Reply* reply = make(task);
  reply->kind = Reply::Kind::kInteger;
  reply->integer = value;
  return reply;
}
void* create_nil(const redisReadTask* task) { return make(task); }
// The reader frees the outermost object only.
void free_reply(void* reply) { delete static_cast<Reply*>(reply); }

// The fields by name: later versions have more, for a protocol that is not spoken here.
redisReplyObjectFunctions* reply_functions() {
  static redisReplyObjectFunctions functions = [] {
    redisReplyObjectFunctions made{};
    made.createString = create_string;
    made.createArray = create_array;
    made.createInteger = create_integer;
    made.createNil = create_nil;
    made.freeObject = free_reply;
    return made;
  }();
  return &functions;
}

constexpr std::array<std::string_view, 9> kAway = {"LOADING",     "READONLY",   "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN",
                                                   "NOREPLICAS", "MISCONF", "BUSY",       "UNKILLABLE"};

}  // namespace

bool is_away(const Reply& reply) {
  const std::string_view code = reply.error_code();
  for (const std::string_view away : kAway) {
    if (code == away) return true;
  }
  return false;
}

Error error_of(const Reply& reply) {
  const std::string_view code = reply.error_code();
  const std::string text = "Redis says: " + reply.text;
  if (code == "OOM") return {ErrorCode::kOverloaded, text};
  if (is_away(reply)) return {ErrorCode::kUnavailable, text};
  if (code == "NOAUTH" || code == "WRONGPASS" || code == "NOPERM") return {ErrorCode::kPermissionDenied, text};
  return {ErrorCode::kIoError, text};
}

Result<std::unique_ptr<Connection>> Connection::open(const Host& host, const Login& login, Milliseconds at_most) {
  redisContext* context = redisConnectWithTimeout(host.name.c_str(), host.port, to_timeval(at_most));
  if (context == nullptr || context->err != 0) {
    const std::string why = context == nullptr ? "out of memory" : context->errstr;
    if (context != nullptr) redisFree(context);
    return Error{ErrorCode::kUnavailable, "cannot connect to Redis at " + host.to_string() + ": " + why};
  }
  redisReaderFree(context->reader);
  context->reader = redisReaderCreateWithFunctions(reply_functions());
  // Otherwise a buffer that grew for a large answer is given back and grown again for the next.
  context->reader->maxbuf = 1 << 20;
  std::unique_ptr<Connection> connection(new Connection(host, context));
  if (Status set = connection->set_timeout(at_most); !set) return set.error();
  (void)redisEnableKeepAlive(context);

  const auto refused = [&](const Error& error, const char* what) {
    return Error{error.code, "Redis at " + host.to_string() + " refuses the " + what + ": " + error.message};
  };
  if (!login.password.empty()) {
    std::vector<std::string_view> arguments = {"AUTH"};
    if (!login.user.empty()) arguments.push_back(login.user);
    arguments.push_back(login.password);
    if (const Result<Reply> reply = connection->run(arguments); !reply) return refused(reply.error(), "login");
  }
  if (login.database != 0) {
    if (const Result<Reply> reply = connection->run({"SELECT", std::to_string(login.database)}); !reply) {
      return refused(reply.error(), "database");
    }
  }
  return connection;
}

Connection::~Connection() { redisFree(context_); }

Status Connection::set_timeout(Milliseconds at_most) {
  if (redisSetTimeout(context_, to_timeval(at_most)) == REDIS_OK) return {};
  return failure("set a timeout for");
}

Error Connection::failure(const char* doing) const {
  const bool late = context_->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK);
  return {sent_ ? ErrorCode::kUnconfirmed : ErrorCode::kUnavailable,
          std::string("cannot ") + doing + " Redis at " + host_.to_string() + ": " +
              (late ? "no answer in time" : context_->errstr)};
}

void Connection::append(const std::vector<std::string_view>& arguments) {
  std::vector<const char*> bytes;
  std::vector<std::size_t> sizes;
  bytes.reserve(arguments.size());
  sizes.reserve(arguments.size());
  for (const std::string_view argument : arguments) {
    bytes.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  // It fails only when memory has run out, and then everything else does.
  (void)redisAppendCommandArgv(context_, static_cast<int>(arguments.size()), bytes.data(), sizes.data());
  appended_ += 1;
}

bool Connection::has_ended() const {
  char byte = 0;
  return ::recv(context_->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

Result<Reply> Connection::next_reply() {
  if (context_->err != 0) return failure("use the connection to");
  // Servers end connections that were idle for long, and all when they start again. Nothing of this has been sent then.
  if (unanswered_ == 0 && has_ended()) {
    return Error{ErrorCode::kUnavailable, "Redis at " + host_.to_string() + " has closed the connection"};
  }
  unanswered_ += std::exchange(appended_, 0);
  sent_ = true;
  void* reply = nullptr;
  if (redisGetReply(context_, &reply) != REDIS_OK) return failure("read from");
  const std::unique_ptr<Reply> owned(static_cast<Reply*>(reply));
  sent_ = false;
  if (unanswered_ > 0) unanswered_ -= 1;
  return std::move(*owned);
}

Result<Reply> Connection::run(const std::vector<std::string_view>& arguments) {
  append(arguments);
  Result<Reply> reply = next_reply();
  if (reply && reply->is_error()) return error_of(*reply);
  return reply;
}

void Connection::interrupt() { (void)::shutdown(context_->fd, SHUT_RDWR); }

int Connection::descriptor() const { return context_->fd; }

Status Connection::flush() {
  unanswered_ += std::exchange(appended_, 0);
  for (int done = 0; done == 0;) {
    if (redisBufferWrite(context_, &done) != REDIS_OK) return failure("write to");
  }
  return {};
}

Result<std::vector<Reply>> Connection::arrived() {
  std::vector<Reply> replies;
  if (redisBufferRead(context_) != REDIS_OK) return failure("read from");
  while (true) {
    void* reply = nullptr;
    if (redisGetReplyFromReader(context_, &reply) != REDIS_OK) return failure("read from");
    if (reply == nullptr) return replies;
    replies.push_back(std::move(*std::unique_ptr<Reply>(static_cast<Reply*>(reply))));
  }
}

}  // namespace bide::brokers::redis
