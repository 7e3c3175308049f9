# The side of Sneakers, played with its own client library: what a Sneakers worker with the Maxretry handler declares,
# publishes, counts and puts into its error queue.
#
#   sneakers_side.rb PORT declare QUEUE TTL_MS [quorum]     declares the worker's queues and exchanges
#   sneakers_side.rb PORT plain QUEUE                       declares a queue without arguments
#   sneakers_side.rb PORT publish QUEUE BODY [HEADER VALUE] publishes through the exchange, confirmed
#   sneakers_side.rb PORT work QUEUE MAX COUNT              takes COUNT deliveries; one whose body begins with "fail" fails
#   sneakers_side.rb PORT errors QUEUE                      takes everything out of the error queue
#
# Prints a JSON object for each message it takes.

require 'bunny'
require 'json'
require 'time'
require 'timeout'

port, role, queue_name, *rest = ARGV
connection = Bunny.new(host: '127.0.0.1', port: port.to_i, user: 'guest', password: 'guest', heartbeat: 10,
                       recover_from_connection_close: false, automatically_recover: false, log_level: :fatal)
connection.start
channel = connection.create_channel
channel.prefetch(1)

def describe(info, properties, body)
  headers = properties.headers || {}
  headers.delete('x-death')
  { body: body, key: info.routing_key, exchange: info.exchange, content_type: properties.content_type,
    delivery_mode: properties.delivery_mode, headers: headers }
end

def attempts(properties, queue_name)
  deaths = ((properties.headers || {})['x-death'] || []).select { |death| death['queue'] == queue_name }
  deaths.sum { |death| death['count'] || 1 } + 1
end

case role
when 'declare'
  ttl, type = rest
  kind = type ? { 'x-queue-type' => type } : {}
  exchange = channel.direct('sneakers', durable: true)
  retrying, failed, requeue = %w[-retry -error -retry-requeue].map { |end_| channel.topic(queue_name + end_, durable: true) }
  queue = channel.queue(queue_name, durable: true, arguments: { 'x-dead-letter-exchange' => retrying.name }.merge(kind))
  channel.queue(retrying.name, durable: true,
                arguments: { 'x-dead-letter-exchange' => requeue.name, 'x-message-ttl' => ttl.to_i })
         .bind(retrying, routing_key: '#')
  channel.queue(failed.name, durable: true).bind(failed, routing_key: '#')
  queue.bind(exchange, routing_key: queue_name)
  queue.bind(requeue, routing_key: '#')
when 'plain'
  channel.queue(queue_name, durable: true)
when 'publish'
  body, header, value = rest
  channel.confirm_select
  channel.direct('sneakers', durable: true)
         .publish(body, routing_key: queue_name, content_type: 'application/json', headers: header ? { header => value } : {})
  abort 'not confirmed' unless channel.wait_for_confirms
when 'work'
  most, count = rest.map(&:to_i)
  deliveries = Queue.new
  queue = channel.queue(queue_name, passive: true)
  queue.subscribe(manual_ack: true) { |*delivery| deliveries << delivery }
  count.times do
    info, properties, body = Timeout.timeout(60) { deliveries.pop }
    attempt = attempts(properties, queue_name)
    puts describe(info, properties, body).merge(attempt: attempt).to_json
    if !body.start_with?('fail')
      channel.ack(info.delivery_tag)
    elsif attempt <= most
      channel.reject(info.delivery_tag, false)
    else
      record = { error: 'failed in Ruby', num_attempts: attempt, failed_at: Time.now.iso8601,
                 properties: properties.to_hash, error_class: 'RuntimeError', error_message: 'failed in Ruby',
                 backtrace: ['sneakers_side.rb:1'] }
      channel.topic(queue_name + '-error', durable: true)
             .publish(body, routing_key: info.routing_key, headers: { retry_info: record.to_json })
      channel.ack(info.delivery_tag)
    end
  end
when 'errors'
  failed = channel.queue(queue_name + '-error', passive: true)
  loop do
    info, properties, body = failed.pop
    break if info.nil?

    puts describe(info, properties, body).to_json
  end
else
  abort "unknown role #{role}"
end
connection.close
