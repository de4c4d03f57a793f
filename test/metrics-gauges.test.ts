import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { createMetrics } from '../src/metrics/metrics.ts'
import { anotherApp, harness } from './support/app.ts'
import { cloudEvent, makeFourPlayers, newGameId, send } from './support/games.ts'
import { METRICS_TOKEN, parseSamples, scrape, scrapeOther } from './support/metrics.ts'
import { startProxy } from './support/proxy.ts'

const h = harness({ METRICS_TOKEN })

const IDLE = { total: 0, idle: 0, waiting: 0 }
const NO_DATA = { pools: { requests: IDLE, reads: IDLE, intake: IDLE }, queues: undefined, guessBudgetUsed: undefined }

suite('gauges of GET /metrics', () => {
  test('/metrics exposes the number and the age of waiting mails, and the connections of each pool', async () => {
    const { sql } = h.database
    await sql`delete from outbox`
    const empty = await scrape(h)
    assert.deepEqual([empty.get('courtside_mails_waiting'), empty.get('courtside_mails_oldest_seconds')], [0, 0])

    await sql`
      insert into outbox (channel, class, created_at, due, payload)
      select channel, 1, now() - age * interval '1 second', now(), '{}'
      from unnest(array['mail', 'mail', 'other'], array[90, 0, 900]) as row (channel, age)`
    const waiting = await scrape(h)
    assert.equal(waiting.get('courtside_mails_waiting'), 2)
    const oldest = waiting.get('courtside_mails_oldest_seconds')!
    assert.ok(oldest >= 90 && oldest < 120, String(oldest))
    assert.equal(waiting.get('courtside_database_up'), 1)
    assert.ok(waiting.get('courtside_pool_connections{pool="requests",state="total"}')! >= 1)
    assert.ok(waiting.has('courtside_pool_connections{pool="intake",state="total"}'))
    assert.ok(waiting.has('courtside_pool_connections{pool="reads",state="idle"}'))
    assert.equal(waiting.get('courtside_pool_connections{pool="requests",state="waiting"}'), 0)
  })

  test('/metrics exposes the number of overdue reminders and the lateness of the oldest reminder', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const readOverdue = async () => {
      const now = await scrape(h)
      return [now.get('courtside_reminders_overdue'), now.get('courtside_reminders_overdue_oldest_seconds')]
    }
    assert.deepEqual(await readOverdue(), [0, 0])
    const starts_at = new Date(h.clock.now().getTime() + 3 * 3_600_000).toISOString()
    await send(
      h,
      cloudEvent('game_created', { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob], starts_at }),
    )
    h.clock.advance(3_600_000 + 30_000)
    // No worker runs in this test, so nothing has announced the reminder that was due two hours before the game.
    assert.deepEqual(await readOverdue(), [1, 30])
  })

  test('while the database is silent, /metrics answers 200 and /readyz answers 503, each within seconds', async t => {
    const proxy = await startProxy(new URL(h.database.url))
    const other = await anotherApp(h, { METRICS_TOKEN }, { databaseUrl: proxy.url })
    t.after(async () => {
      await proxy.refuse()
      await other.close()
      await proxy.close()
    })
    assert.equal((await other.call('GET', '/readyz')).status, 200)
    await other.call('GET', '/metrics', { token: METRICS_TOKEN })
    proxy.setSilent(true)
    const startedMs = performance.now()
    const [metrics, ready] = await Promise.all([
      other.call('GET', '/metrics', { token: METRICS_TOKEN }),
      other.call('GET', '/readyz'),
    ])
    // Without the limit, each would wait until `maxSilenceMs`, which is 35 s.
    assert.ok(performance.now() - startedMs < 20_000)
    assert.deepEqual([metrics.status, ready.status], [200, 503])
    assert.equal(parseSamples(metrics.text).get('courtside_database_up'), 0)
  })

  test('while the database is down, /metrics answers 200 without the metrics of mails, reminders and guesses', async () => {
    // No server listens on port 9.
    const answer = await scrapeOther(h, { METRICS_TOKEN }, 'postgres://nobody@127.0.0.1:9/nothing')
    assert.equal(answer.status, 200)
    const now = parseSamples(answer.text)
    assert.equal(now.get('courtside_database_up'), 0)
    assert.ok(![...now.keys()].some(name => /mails_waiting|mails_oldest|overdue|guess_budget/.test(name)))
  })
})

suite('createMetrics', () => {
  test('two metrics objects count reminders, lateness and open streams separately', async () => {
    const [one, other] = [createMetrics(), createMetrics()]
    one.metrics.countDueTime('game_reminder', 'told', 0.7)
    one.metrics.countDueTime('game_started', 'dropped', 1000)
    for (const change of [1, 1, -1] as const) one.metrics.countStream(change)
    const now = parseSamples((await one.expose(NO_DATA)).text)
    assert.equal(now.get('courtside_reminders_total{type="game_reminder",outcome="told"}'), 1)
    assert.equal(now.get('courtside_reminder_lateness_seconds_bucket{le="0.5",type="game_reminder"}'), 0)
    assert.equal(now.get('courtside_reminder_lateness_seconds_bucket{le="1",type="game_reminder"}'), 1)
    assert.equal(now.get('courtside_reminder_lateness_seconds_sum{type="game_started"}'), 1000)
    assert.equal(now.get('courtside_streams_open'), 1)
    assert.equal(parseSamples((await other.expose(NO_DATA)).text).get('courtside_streams_open'), 0)
  })

  test('docs/operations.md lists every metric', async () => {
    const text = await readFile(new URL('../docs/operations.md', import.meta.url), 'utf8')
    const { expose } = createMetrics()
    const exposed = (await expose(NO_DATA)).text
    const names = [...exposed.matchAll(/^# TYPE (courtside_\w+) /gm)].map(([, name]) => name!)
    assert.ok(names.length > 10)
    for (const name of names) assert.ok(text.includes(`| \`${name}\` |`), `${name} is missing`)
  })
})
