// A relay by ComQ: takes COUNT tasks from a queue, enqueues one for another queue in each handler, and acknowledges after
// that is confirmed. Prints the seconds from the first task to the last confirmation.
//
//   relay.js PORT PREFETCH FROM TO COUNT      PREFETCH 0: ComQ's own

'use strict'

const path = require('node:path')
const comq = require('comq')

const [port, prefetch, from, to, count] = process.argv.slice(2)

// ComQ has no option for it.
if (+prefetch > 0) {
  const folder = path.dirname(require.resolve('comq/package.json'))
  require(path.join(folder, 'source/topology')).event.prefetch = +prefetch
}

const main = async () => {
  const io = await comq.connect(`amqp://guest:guest@127.0.0.1:${port}`)
  let left = +count
  let start
  await new Promise((resolve, reject) => {
    io.process(from, async (task) => {
      start ??= process.hrtime.bigint()
      await io.enqueue(to, task)
      if (--left === 0) resolve()
    }).catch(reject)
  })
  process.stdout.write(`${Number(process.hrtime.bigint() - start) / 1e9}\n`)
  setTimeout(() => io.close(), 100) // The last acknowledgements go out first.
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
