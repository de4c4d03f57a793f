import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { computeBackoffMs } from '../client/dist/backoff.js'
import { readEvents } from '../client/dist/event-stream.js'

const SYNC = 'event: sync\ndata: {"unread_count":2,"latest_id":7}\n\n'

test('the client reads the same events whatever the line ending is and wherever the stream is split', async () => {
  const text = `:\n\n${SYNC}event: notification\ndata: {"title":"Ça · 🎾"}\n\n: beat\n\ndata:1\ndata: 2\nid: 3\n\n`
  const expected = [
    ['sync', '{"unread_count":2,"latest_id":7}'],
    ['notification', '{"title":"Ça · 🎾"}'],
    ['message', '1\n2'],
  ]
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('\n', '\r\n', '\r'), fc.array(fc.nat(250)), async (ending, cuts) => {
      const bytes = new TextEncoder().encode(text.replaceAll('\n', ending))
      const places = [0, ...cuts.filter(cut => cut < bytes.length).sort((a, b) => a - b), bytes.length]
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          places.slice(1).forEach((end, index) => {
            controller.enqueue(bytes.slice(places[index], end))
          })
          // After a carriage return, `readEvents` waits for the next byte, which may be a line feed. If the stream
          // ended here, `readEvents` would not report the last event. So the test adds a byte.
          if (ending === '\r') controller.enqueue(new TextEncoder().encode(':'))
          controller.close()
        },
      })
      const events: string[][] = []
      let chunks = 0
      await readEvents(
        body.getReader(),
        () => {
          chunks += 1
        },
        (name, data) => events.push([name, data]),
      )
      assert.deepEqual(events, expected)
      assert.ok(chunks >= 1)
    }),
  )
})

test('the longest backoff doubles with each failure up to a limit, and no wait is shorter than Retry-After', () => {
  const backoff = { baseMs: 500, maxMs: 30_000 }
  const longest = [1, 2, 3, 7, 50].map(failures => computeBackoffMs(failures, backoff, undefined, 1))
  assert.deepEqual(longest, [500, 1000, 2000, 30_000, 30_000])
  assert.equal(computeBackoffMs(3, backoff, undefined, 0), 0)
  assert.equal(computeBackoffMs(1, backoff, 60, 0), 60_000)
  assert.equal(computeBackoffMs(1, backoff, 60, 1), 60_500)
})
