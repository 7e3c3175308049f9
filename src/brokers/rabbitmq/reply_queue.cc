#include "brokers/rabbitmq/reply_queue.h"

#include <variant>

namespace bide::brokers::rabbitmq {

namespace {

constexpr std::chrono::milliseconds kTryReplyQueueAgain{100};

}  // namespace

Status ReplyQueue::open(Connection& connection, ChannelNumber channel) {
  if (consuming_) return {};
  wanted_ = true;
  channel_ = channel;
  next_try_ = std::chrono::steady_clock::now() + kTryReplyQueueAgain;
  if (!channel_open_) {
    if (Status opened = connection.open_channel(channel); !opened) return opened;
    channel_open_ = true;
  }
  const Result<std::string> declared = connection.declare_private_queue(channel, name_);
  if (!declared) {
    channel_open_ = false;  // A refusal closes it.
    return declared.error();
  }
  ConsumeOptions options;
  options.queue = name_;
  options.tag = "replies-" + std::to_string(++consumers_);
  options.no_ack = true;
  options.exclusive = true;
  if (Status consumes = connection.consume(channel, options); !consumes) {
    channel_open_ = false;
    return consumes;
  }
  consuming_ = true;
  return {};
}

bool ReplyQueue::take(Event& event) {
  if (channel_ == 0) return false;
  if (Delivery* const delivery = std::get_if<Delivery>(&event); delivery != nullptr && delivery->channel == channel_) {
    sink_(std::move(delivery->message));
    return true;
  }
  if (const auto* cancelled = std::get_if<ConsumerCancelled>(&event);
      cancelled != nullptr && cancelled->channel == channel_) {
    consuming_ = false;  // Somebody has removed the queue.
    return true;
  }
  if (const auto* closed = std::get_if<ChannelClosed>(&event); closed != nullptr && closed->channel == channel_) {
    channel_open_ = consuming_ = false;
    return true;
  }
  return false;
}

}  // namespace bide::brokers::rabbitmq
