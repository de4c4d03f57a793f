import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { harness, JWT_SECRET, settingsFor } from './support/app.ts'
import { startServer } from './support/client.ts'
import { operatorCommands } from './support/operator.ts'
import { courtside, type Service, startService } from './support/service.ts'

const h = harness()
const { runCommand, writeInput } = operatorCommands(h)

/** Returns what a command wrote to stderr, without the lines of the audit trail. */
const withoutAudit = (errors: string) => errors.replace(/^\{.*\}\n/gm, '')

describe('courtside emit', () => {
  let service: Service
  before(async () => {
    service = await startService(settingsFor(h.database.url))
  })
  after(() => service.stop())

  const event = (id: string, type = 'game_created') => ({
    specversion: '1.0',
    id,
    source: '/emit',
    type,
    time: '2026-01-17T10:00:00Z',
    data: { game_id: 77, creator_id: 1, player_ids: [], starts_at: '2026-01-19T18:00:00+01:00' },
  })

  test('emit accepts a file with one event, with an array of events or with one event on each line, and exits with 1 if the service rejects an event', async () => {
    const emit = (path: string) => runCommand('emit', path, '--url', `${service.address}/`, '--json')
    for (const content of [
      event('1'),
      [event('2'), event('3')],
      `${JSON.stringify(event('4'))}\n\n${JSON.stringify(event('5'))}\n`,
    ]) {
      const { code, output, errors } = await emit(await writeInput('events', content))
      assert.equal(code, 0, errors)
      for (const result of JSON.parse(output)) assert.equal(result.status, 'accepted')
    }
    const many = await emit(
      await writeInput(
        'many',
        Array.from({ length: 205 }, (_, index) => event(`many ${index}`)),
      ),
    )
    assert.equal(JSON.parse(many.output).length, 205)
    const refused = await emit(await writeInput('refused', [event('6'), event('7', 'game_eaten')]))
    assert.equal(refused.code, 1)
    assert.deepEqual(
      JSON.parse(refused.output).map((result: { status: string }) => result.status),
      ['accepted', 'rejected'],
    )
  })

  test('emit splits 100 events into several batches if their size exceeds the limit for one batch', async () => {
    // The unknown member `note` makes each event large. The service ignores this member, but its bytes count towards
    // the size of a batch. In UTF-8, "é" has two bytes.
    const large = Array.from({ length: 100 }, (_, index) => ({ ...event(`large ${index}`), note: 'é'.repeat(10_000) }))
    const { code, output, errors } = await runCommand(
      'emit',
      await writeInput('large', large),
      '--url',
      service.address,
      '--json',
    )
    assert.equal(code, 0, errors)
    assert.deepEqual(
      JSON.parse(output).map(({ id, status }: { id: string; status: string }) => [id, status]),
      large.map(({ id }) => [id, 'accepted']),
    )
  })

  test('emit prints an error and exits with 1 if no node answers', async () => {
    const { code, errors } = await runCommand(
      'emit',
      await writeInput('event', event('8')),
      '--url',
      'http://127.0.0.1:9',
    )
    assert.deepEqual([code, withoutAudit(errors)], [1, 'No node answers at http://127.0.0.1:9.\n'])
  })

  test('emit prints an error and exits with 1 if a proxy or another program answers', async () => {
    for (const status of [502, 200]) {
      const other = await startServer((_, response) => response.writeHead(status).end('<h1>Hello</h1>'))
      const { code, errors } = await runCommand('emit', await writeInput('event', event('9')), '--url', other.url)
      await other.close()
      assert.deepEqual(
        [code, withoutAudit(errors)],
        [1, `The server at ${other.url} is not a Courtside node: it answered ${status}.\n`],
      )
    }
  })

  test('emit prints an error and exits with 1 if the node refuses the key', async () => {
    const env = { ...settingsFor(h.database.url), INTAKE_KEYS: JWT_SECRET }
    const { code, errors } = await courtside(
      ['emit', await writeInput('event', event('10')), '--url', service.address],
      env,
    )
    assert.deepEqual([code, withoutAudit(errors)], [1, 'The node refused the events: 401 Unauthenticated.\n'])
  })
})
