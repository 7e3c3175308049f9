// The side of ComQ, played by its own package, which NODE_PATH leads to.
//
//   comq_side.js PORT ask QUEUE COUNT          COUNT requests at once, { n, text }; prints each reply
//   comq_side.js PORT encodings QUEUE          one request in each encoding; prints each reply
//   comq_side.js PORT emit EXCHANGE COUNT      COUNT events { n }
//   comq_side.js PORT consume EXCHANGE GROUP COUNT   prints COUNT events
//   comq_side.js PORT enqueue QUEUE COUNT      COUNT tasks { n }
//   comq_side.js PORT process QUEUE COUNT      prints COUNT tasks and their properties
//   comq_side.js PORT fail QUEUE               takes one task, prints its x-attempt and fails
//   comq_side.js PORT odd QUEUE                messages that no ComQ would send
//   comq_side.js PORT reply QUEUE COUNT        answers COUNT requests { n } with { twice: 2n }
//
// Prints a JSON value on each line.

'use strict'

const comq = require('comq')
const amqplib = require('amqplib')

const [port, role, name, ...rest] = process.argv.slice(2)
const url = `amqp://guest:guest@127.0.0.1:${port}`
const json = 'application/json' // Up to 0.10 it is not the default.
const print = (value) => process.stdout.write(JSON.stringify(value) + '\n')
const shown = (value) => Buffer.isBuffer(value) ? { bytes: value.toString('hex') } : value

// Calls `start` with a handler and returns when it was called so often.
const times = (count, handle, start) => new Promise((resolve, reject) => {
  let left = count
  start(async (...args) => {
    const result = handle(...args)
    if (--left === 0) setTimeout(resolve, 100) // The acknowledgement goes out first.
    return result
  }).catch(reject)
})

const roles = {
  async ask (io, count) {
    const texts = (n) => 'grün '.repeat(n % 50)
    const replies = await Promise.all(Array.from({ length: +count }, (_, n) => io.request(name, { n, text: texts(n) }, json)))
    replies.forEach((reply, n) => print({ n, reply, same: reply.text === texts(n) }))
  },
  async encodings (io) {
    print(shown(await io.request(name, { a: [1, null, 'x'] }, json)))
    print(shown(await io.request(name, { a: [1, null, 'x'] }, 'application/msgpack')))
    print(shown(await io.request(name, 'plain words', 'text/plain')))
    print(shown(await io.request(name, Buffer.from('00ff10', 'hex'))))
  },
  async emit (io, count) {
    for (let n = 0; n < +count; n++) await io.emit(name, { n }, json)
  },
  async consume (io, group, count) {
    await times(+count, (event) => { print(event) }, (handle) => io.consume(name, group, handle))
  },
  async enqueue (io, count) {
    for (let n = 0; n < +count; n++) await io.enqueue(name, { n })
  },
  async process (io, count) {
    await times(+count, (task, properties) => { print({ task, properties }) }, (handle) => io.process(name, handle))
  },
  async fail (io) {
    // ComQ takes nothing more after a failure, and expects the process to end by it.
    const failed = new Promise((resolve) => process.once('unhandledRejection', resolve))
    await io.process(name, (task, properties) => {
      print({ task, attempt: properties.headers['x-attempt'] ?? 0 })
      throw new Error('failed in Node')
    })
    await failed
    process.exit(0)
  },
  async odd () {
    const connection = await amqplib.connect(url)
    const channel = await connection.createConfirmChannel()
    await channel.assertQueue(name, { durable: true })
    const send = (body, options) => channel.sendToQueue(name, Buffer.from(body), options)
    send('{"n":', { contentType: json, correlationId: 'half', replyTo: 'nowhere' })
    send('{"n":1}', { contentType: json, replyTo: 'nobody..is.there', correlationId: '' })
    send('{"n":2}', { contentType: json, headers: { 'x-attempt': 'many' } })
    send('{"n":3}', { contentType: json, headers: { 'x-attempt': -1, nested: { a: [1, { b: 2 }] } } })
    send('', {})
    send('\xff\xfe', { contentType: 'x'.repeat(250), messageId: 'y'.repeat(250) })
    await channel.waitForConfirms()
    await connection.close()
  },
  async reply (io, count) {
    await times(+count, ({ n }) => ({ twice: 2 * n }), (handle) => io.reply(name, handle))
  }
}

const main = async () => {
  const io = await comq.connect(url)
  await roles[role](io, ...rest)
  await io.close()
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
