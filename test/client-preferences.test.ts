import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Courtside, NotificationPreferences, PreferencesPatch } from 'courtside-client'
import { PreferenceChanges } from '../client/dist/inbox/preference-changes.js'

const SAVED = {
  types: {
    game_joined: { category: 'Games', label: 'A player joins your game', push: true, email: false },
    game_left: { category: 'Games', label: 'A player leaves your game', push: true, email: false },
  },
  email_paused: false,
  quiet_hours: { enabled: true, from: '22:00', to: '08:00' },
  time_zone: 'Europe/Paris',
} as NotificationPreferences

const turnOff = (type: string) => ({ types: { [type]: { push: false } } }) as PreferencesPatch

/** Creates changes whose requests wait until the test answers them. */
function createChanges() {
  const requests: { patch: PreferencesPatch; answer(preferences: NotificationPreferences): void; refuse(): void }[] = []
  const shown: NotificationPreferences[] = []
  const update = (patch: PreferencesPatch, options: object) => {
    assert.deepEqual(options, { language: 'en' })
    const { promise, resolve, reject } = Promise.withResolvers<NotificationPreferences>()
    requests.push({ patch, answer: resolve, refuse: () => reject(new Error('Refused.')) })
    return promise
  }
  const client = { preferences: { update } } as unknown as Courtside
  const changes = new PreferenceChanges(client, 'en', SAVED, preferences => shown.push(preferences))
  const readPush = () => Object.values<{ push: boolean }>(changes.shown.types).map(({ push }) => push)
  return { changes, requests, shown, readPush }
}

const tick = () => new Promise(resolve => setImmediate(resolve))

describe('the changes of a settings panel', () => {
  test('a change is shown before the answer, and the answer replaces it', async () => {
    const { changes, requests, shown, readPush } = createChanges()
    const sent = changes.send({ quiet_hours: { from: '21:00' } })
    assert.deepEqual(shown.at(-1)!.quiet_hours, { enabled: true, from: '21:00', to: '08:00' })
    await tick()
    requests[0]!.answer({ ...SAVED, quiet_hours: { enabled: true, from: '21:00', to: '07:00' } })
    await sent
    assert.deepEqual(shown.at(-1)!.quiet_hours, { enabled: true, from: '21:00', to: '07:00' })
    assert.deepEqual(readPush(), [true, true])
  })

  test('changes are sent one after another, and an early answer does not undo a later change', async () => {
    const { changes, requests, readPush } = createChanges()
    const sent = [changes.send(turnOff('game_joined')), changes.send(turnOff('game_left'))]
    assert.deepEqual(readPush(), [false, false])
    await tick()
    assert.equal(requests.length, 1)
    const { game_joined, game_left } = SAVED.types as Record<string, (typeof SAVED.types)['game_joined']>
    const joinedOff = { ...game_joined!, push: false }
    requests[0]!.answer({ ...SAVED, types: { ...SAVED.types, game_joined: joinedOff } })
    await sent[0]
    assert.deepEqual(readPush(), [false, false])
    await tick()
    assert.deepEqual(requests[1]!.patch, turnOff('game_left'))
    const leftOff = { ...game_left!, push: false }
    requests[1]!.answer({ ...SAVED, types: { ...SAVED.types, game_joined: joinedOff, game_left: leftOff } })
    await sent[1]
    assert.deepEqual(readPush(), [false, false])
  })

  test('a refused change is taken back, and the changes after it stay and are sent', async () => {
    const { changes, requests, readPush } = createChanges()
    const sent = [changes.send(turnOff('game_joined')), changes.send(turnOff('game_left'))]
    await tick()
    requests[0]!.refuse()
    await assert.rejects(sent[0]!, /Refused/)
    assert.deepEqual(readPush(), [true, false])
    await tick()
    requests[1]!.refuse()
    await assert.rejects(sent[1]!, /Refused/)
    assert.deepEqual(readPush(), [true, true])
  })
})
