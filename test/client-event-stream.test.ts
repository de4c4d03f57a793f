import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { backOff } from '../client/dist/backoff.js'
import { readEvents } from '../client/dist/event-stream.js'

const SYNC = 'event: sync\ndata: {"unread_count":2,"latest_id":7}\n\n'

test('events are read alike, however the bytes are cut and whatever ends the lines', async () => {
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
          // With bare carriage returns the last of them may be half of a pair, until something follows.
          if (ending === '\r') controller.enqueue(new TextEncoder().encode(':'))
          controller.close()
        },
      })
      const events: string[][] = []
      let pieces = 0
      await readEvents(
        body.getReader(),
        () => {
          pieces += 1
        },
        (name, data) => events.push([name, data]),
      )
      assert.deepEqual(events, expected)
      assert.ok(pieces >= 1)
    }),
  )
})

test('back-off doubles to a limit, with full jitter, and never undercuts Retry-After', () => {
  const pauses = { baseMs: 500, mostMs: 30_000 }
  const longest = [1, 2, 3, 7, 50].map(failures => backOff(failures, pauses, undefined, 1))
  assert.deepEqual(longest, [500, 1000, 2000, 30_000, 30_000])
  assert.equal(backOff(3, pauses, undefined, 0), 0)
  assert.equal(backOff(1, pauses, 60, 0), 60_000)
  assert.equal(backOff(1, pauses, 60, 1), 60_500)
})
