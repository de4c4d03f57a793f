import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createStartDelay } from '../src/outbox/start-delay.ts'

test('deliveries whose random waits end soon after each other begin together', async () => {
  const wait = createStartDelay(400, new AbortController().signal)
  let turn = 0
  const turns = new Set<number>()
  let isOver = false
  const count = () => {
    turn += 1
    if (!isOver) setImmediate(count)
  }
  count()
  await Promise.all(Array.from({ length: 400 }, () => wait().then(() => turns.add(turn))))
  isOver = true
  // The waits would have about 300 different ends.
  assert.ok(turns.size > 1 && turns.size < 100, `${turns.size} groups`)
})

test('when a worker stops, its deliveries wait neither for their moment nor for other deliveries', async () => {
  const stopping = new AbortController()
  const wait = createStartDelay(2 ** 30, stopping.signal)
  const waits = [wait(), wait()]
  stopping.abort()
  waits.push(wait())
  let isOver = false
  void Promise.all(waits).then(() => {
    isOver = true
  })
  await nextTurn()
  assert.ok(isOver)
})
