import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { formatNameForText, isFirstName, isName } from '../../src/accounts/names.ts'
import { hasFormatControl } from '../../src/http/format/plain-text.ts'
import { harness } from '../support/app.ts'
import { makeUser } from '../support/factories.ts'
import { cloudEvent, newGameId, readGame, send } from '../support/games.ts'
import { newEmail, profile, queuedCode, signUp } from '../support/scenario.ts'
import { describeAnswer, readSuite, skip } from '../support/suites.ts'

const REQUEST = '/api/v1/auth/request-otp'
const VERIFY = '/api/v1/auth/verify-otp'
const LIST = '/api/v1/notifications'

// The service trims spaces and tabs at both ends of a string. An empty string counts as absent.
const trim = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '')
const isOneLine = (text: string, longest: number) =>
  /^[^\p{Cc}\u2028\u2029]*$/u.test(text) && [...text].length <= longest

/** Calls `work` for each item, with up to six concurrent calls. */
async function runInParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values()
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      for (const item of rest) await work(item)
    }),
  )
}

describe('the big list of naughty strings', { skip }, () => {
  const h = harness()
  const strings = readSuite<string[]>('naughty-strings.json')

  function assertRefused(text: string, answer: Awaited<ReturnType<typeof send>>, ...fields: string[]): void {
    assert.equal(answer.status, 422, describeAnswer(text, answer))
    assert.equal(answer.body.code, 'validation_failed', describeAnswer(text, answer))
    assert.deepEqual(Object.keys(answer.body.errors), fields, describeAnswer(text, answer))
  }

  /**
   * Signs up a user with the first name and the last name `name`.
   * @returns the profile of the user, or undefined if the name is refused
   */
  async function signUpAs(name: string) {
    const email = newEmail()
    const requested = await h.call('POST', REQUEST, { body: { ...profile(email), first_name: name, last_name: name } })
    const isLine = trim(name) !== '' && isOneLine(trim(name), 100)
    const refused = [
      ...(isLine && isFirstName(name) ? [] : ['first_name']),
      ...(isLine && isName(name) ? [] : ['last_name']),
    ]
    if (refused.length > 0) return assertRefused(name, requested, ...refused)
    assert.equal(requested.status, 200, describeAnswer(name, requested))
    const body = { email, code: await queuedCode(h, email) }
    const { access_token: token } = (await h.call('POST', VERIFY, { body })).body
    return (await h.call('GET', '/api/v1/auth/me', { token })).body.data
  }

  test('an accepted name appears unchanged in the profile, and cut and isolated in the notifications of other users', async () => {
    const reader = await makeUser(h)
    const names = new Map<number, string>()
    await runInParallel(strings, async name => {
      const me = await signUpAs(name)
      if (!me) return
      assert.deepEqual([me.first_name, me.last_name], [trim(name), trim(name)])
      names.set(me.id, trim(name))
      const data = { game_id: newGameId(), creator_id: reader.id, player_ids: [reader.id, me.id], actor_id: me.id }
      const answer = await send(h, cloudEvent('game_joined', data))
      assert.deepEqual([answer.status, answer.body.notifications], [202, 1], describeAnswer(name, answer))
    })
    assert.ok(names.size > 250, String(names.size))
    for (let page = 1; names.size > 0; page += 1) {
      const { data } = (await h.call('GET', `${LIST}?per_page=100&page=${page}`, { token: reader.token })).body
      assert.notEqual(data.length, 0, `no notification contains the names ${JSON.stringify([...names.values()])}`)
      for (const { message, data: about } of data) {
        const name = names.get(about.actor_id)!
        const shown = formatNameForText(name)!
        assert.equal(message.slice(0, shown.length + 20), `${shown} a rejoint la partie`)
        names.delete(about.actor_id)
      }
    }
  })

  test('a string that is sent as a sign-in code is refused and does not count as an attempt', async () => {
    const { token } = await signUp(h)
    const email = newEmail()
    await h.call('POST', REQUEST, { body: profile(email) })
    await runInParallel(strings, async code => {
      assertRefused(code, await h.call('POST', VERIFY, { body: { email, code } }), 'code')
      assertRefused(code, await h.call('DELETE', '/api/v1/auth/me', { token, body: { code } }), 'code')
    })
    const last = await h.call('POST', VERIFY, { body: { email, code: await queuedCode(h, email) } })
    assert.equal(last.status, 200)
  })

  test('a string that is sent as an e-mail address, local part or domain is refused, or stored as a plain address', async () => {
    const accepted = new Set<string>()
    for (const text of strings) {
      for (const email of [text, `${text}@example.com`, `a@${text}`, `a@${text}.example.com`]) {
        h.clock.advance(60_000)
        const answer = await h.call('POST', REQUEST, { body: { email } })
        if (answer.status !== 200) {
          assertRefused(email, answer, 'email')
          continue
        }
        const [row] = await h.database.sql<{ email: string }>`
          select email from sign_in_address order by sent_at desc limit 1`
        assert.match(
          row!.email,
          /^[a-z0-9!#$%&'*+/=?^_`{|}~.-]+@([a-z0-9-]+\.)+[a-z0-9-]+$/,
          describeAnswer(email, answer),
        )
        if (/^[\x20-\x7e]*$/.test(email)) assert.equal(row!.email, trim(email).toLowerCase())
        accepted.add(email)
      }
    }
    for (const plain of ['undefined@example.com', '!@#$%^&*()`~@example.com', 'a@null.example.com']) {
      assert.equal(accepted.has(plain), !plain.includes('('), plain)
    }
  })

  test('a string that is accepted as the `place` of a game is stored unchanged', async () => {
    await runInParallel(strings, async place => {
      const game_id = newGameId()
      const answer = await send(h, cloudEvent('game_created', { game_id, creator_id: 1, player_ids: [1], place }))
      if (isOneLine(trim(place), 120) && !hasFormatControl(place)) {
        assert.equal(answer.status, 202, describeAnswer(place, answer))
        assert.equal((await readGame(h, game_id))!.place, trim(place) || null)
      } else assertRefused(place, answer, 'data.place')
    })
  })

  test('the id and the source of an event are stored unchanged, and a repeated event is a duplicate', async () => {
    for (const text of strings) {
      const body = cloudEvent(
        'game_created',
        { game_id: newGameId(), creator_id: 1, player_ids: [1] },
        { id: text, source: text },
      )
      for (const [status, outcome] of [
        [202, 'accepted'],
        [200, 'duplicate'],
      ] as const) {
        const answer = await send(h, body)
        if (text === '') assertRefused(text, answer, 'id', 'source')
        // The list contains four strings twice. The second event with such a string is a duplicate of the first event.
        else if (strings.indexOf(text) === strings.lastIndexOf(text)) {
          assert.equal(answer.status, status, describeAnswer(text, answer))
          assert.deepEqual(answer.body, { id: text, status: outcome, notifications: 0 })
        } else assert.ok(answer.status < 500, describeAnswer(text, answer))
      }
    }
  })

  test('a string that is sent as an id gets 404 in a path, and 422 in a query or a body', async () => {
    const { token } = await signUp(h)
    const data = { game_id: newGameId(), creator_id: 1, player_ids: [1], actor_id: 1 }
    await runInParallel(strings, async text => {
      const path = `${LIST}/${encodeURIComponent(text)}`
      const isId = /^[1-9]\d{0,15}$/.test(text)
      for (const [method, url] of [
        ['POST', `${path}/read`],
        ['DELETE', path],
      ] as const) {
        const answer = await h.call(method, url, { token })
        // If a string is a valid id, a notification of another user may have this id. The test ignores the answer for
        // `.`, because Fastify’s `inject`, which sends the requests, removes the segment `.` from a path.
        if (text !== '.')
          assert.ok(answer.status === 404 || (isId && answer.status === 403), describeAnswer(text, answer))
      }
      for (const name of ['page', 'per_page', 'before_id']) {
        const answer = await h.call('GET', `${LIST}?${name}=${encodeURIComponent(text)}`, { token })
        if (text === '' || (isId && answer.status === 200))
          assert.equal(answer.status, 200, describeAnswer(text, answer))
        else assertRefused(text, answer, name)
      }
      const level = await h.call('POST', '/api/v1/auth/level-assessment', { token, body: { game_level_id: text } })
      assertRefused(text, level, 'game_level_id')
      const some = await h.call('POST', `${LIST}/read-all`, { token, body: { ids: [1, text] } })
      assertRefused(text, some, 'ids.1')
      for (const [field, value] of [
        ['game_id', text],
        ['creator_id', text],
        ['player_ids', text],
        ['actor_id', text],
      ] as const) {
        assertRefused(text, await send(h, cloudEvent('game_joined', { ...data, [field]: value })), `data.${field}`)
      }
      const players = await send(h, cloudEvent('game_joined', { ...data, player_ids: [text] }))
      assertRefused(text, players, 'data.player_ids.0')
    })
  })
})
