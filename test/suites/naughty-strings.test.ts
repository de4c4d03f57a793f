import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from '../support/app.ts'
import { makeUser } from '../support/factories.ts'
import { cloudEvent, gameRow, newGame, send } from '../support/games.ts'
import { newEmail, profile, queuedCode, signUp } from '../support/scenario.ts'
import { readSuite, skip, told } from '../support/suites.ts'

const REQUEST = '/api/v1/auth/request-otp'
const VERIFY = '/api/v1/auth/verify-otp'
const LIST = '/api/v1/notifications'

// "Strings are trimmed of spaces and tabs, an empty one counts as absent."
const trimmed = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '')
const isLine = (text: string, longest: number) => /^[^\p{Cc}\u2028\u2029]*$/u.test(text) && [...text].length <= longest

/** Several at once, each item once. */
async function inLanes<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
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

  function refused(text: string, answer: Awaited<ReturnType<typeof send>>, ...fields: string[]): void {
    assert.equal(answer.status, 422, told(text, answer))
    assert.equal(answer.body.code, 'validation_failed', told(text, answer))
    assert.deepEqual(Object.keys(answer.body.errors), fields, told(text, answer))
  }

  /** Signs somebody up under this name. @returns them as they see themselves, undefined when the name is refused */
  async function signUpAs(name: string) {
    const email = newEmail()
    const asked = await h.call('POST', REQUEST, { body: { ...profile(email), first_name: name, last_name: name } })
    if (trimmed(name) === '' || !isLine(trimmed(name), 100)) return refused(name, asked, 'first_name', 'last_name')
    assert.equal(asked.status, 200, told(name, asked))
    const body = { email, code: await queuedCode(h, email) }
    const { access_token: token } = (await h.call('POST', VERIFY, { body })).body
    return (await h.call('GET', '/api/v1/auth/me', { token })).body.data
  }

  test('as names: those accepted come back, on the profile and in what others are told', async () => {
    const reader = await makeUser(h)
    const names = new Map<number, string>()
    await inLanes(strings, async name => {
      const me = await signUpAs(name)
      if (!me) return
      assert.deepEqual([me.first_name, me.last_name], [trimmed(name), trimmed(name)])
      names.set(me.id, trimmed(name))
      const data = { game_id: newGame(), creator_id: reader.id, player_ids: [reader.id, me.id], actor_id: me.id }
      const answer = await send(h, cloudEvent('game_joined', data))
      assert.deepEqual([answer.status, answer.body.notifications], [202, 1], told(name, answer))
    })
    assert.ok(names.size > 400, String(names.size))
    for (let page = 1; names.size > 0; page += 1) {
      const { data } = (await h.call('GET', `${LIST}?per_page=100&page=${page}`, { token: reader.token })).body
      assert.notEqual(data.length, 0, `never told of ${JSON.stringify([...names.values()])}`)
      for (const { message, data: about } of data) {
        const name = names.get(about.actor_id)!
        assert.equal(message.slice(0, name.length + 20), `${name} a rejoint la partie`)
        names.delete(about.actor_id)
      }
    }
  })

  test('as codes: refused, at the cost of no attempt', async () => {
    const { token } = await signUp(h)
    const email = newEmail()
    await h.call('POST', REQUEST, { body: profile(email) })
    await inLanes(strings, async code => {
      refused(code, await h.call('POST', VERIFY, { body: { email, code } }), 'code')
      refused(code, await h.call('DELETE', '/api/v1/auth/me', { token, body: { code } }), 'code')
    })
    const last = await h.call('POST', VERIFY, { body: { email, code: await queuedCode(h, email) } })
    assert.equal(last.status, 200)
  })

  test('as addresses, local parts and domains: refused, or kept as the plain address that they spell', async () => {
    const accepted = new Set<string>()
    for (const text of strings) {
      for (const email of [text, `${text}@example.com`, `a@${text}`, `a@${text}.example.com`]) {
        h.clock.advance(60_000)
        const answer = await h.call('POST', REQUEST, { body: { email } })
        if (answer.status !== 200) {
          refused(email, answer, 'email')
          continue
        }
        const [row] = await h.database.sql<{ email: string }>`
          select email from sign_in_address order by sent_at desc limit 1`
        assert.match(row!.email, /^[a-z0-9!#$%&'*+/=?^_`{|}~.-]+@([a-z0-9-]+\.)+[a-z0-9-]+$/, told(email, answer))
        if (/^[\x20-\x7e]*$/.test(email)) assert.equal(row!.email, trimmed(email).toLowerCase())
        accepted.add(email)
      }
    }
    for (const plain of ['undefined@example.com', '!@#$%^&*()`~@example.com', 'a@null.example.com']) {
      assert.equal(accepted.has(plain), !plain.includes('('), plain)
    }
  })

  test('as places: those accepted are kept as they are', async () => {
    await inLanes(strings, async place => {
      const game_id = newGame()
      const answer = await send(h, cloudEvent('game_created', { game_id, creator_id: 1, player_ids: [1], place }))
      if (isLine(trimmed(place), 120)) {
        assert.equal(answer.status, 202, told(place, answer))
        assert.equal((await gameRow(h, game_id))!.place, trimmed(place) || null)
      } else refused(place, answer, 'data.place')
    })
  })

  test('as an event’s id and source: verbatim, and the same name again', async () => {
    for (const text of strings) {
      const body = cloudEvent(
        'game_created',
        { game_id: newGame(), creator_id: 1, player_ids: [1] },
        { id: text, source: text },
      )
      for (const [status, outcome] of [
        [202, 'accepted'],
        [200, 'duplicate'],
      ] as const) {
        const answer = await send(h, body)
        if (text === '') refused(text, answer, 'id', 'source')
        // Four stand in the list twice.
        else if (strings.indexOf(text) === strings.lastIndexOf(text)) {
          assert.equal(answer.status, status, told(text, answer))
          assert.deepEqual(answer.body, { id: text, status: outcome, notifications: 0 })
        } else assert.ok(answer.status < 500, told(text, answer))
      }
    }
  })

  test('as identifiers: 404 in a path, 422 in a query or a body', async () => {
    const { token } = await signUp(h)
    const data = { game_id: newGame(), creator_id: 1, player_ids: [1], actor_id: 1 }
    await inLanes(strings, async text => {
      const path = `${LIST}/${encodeURIComponent(text)}`
      const isId = /^[1-9]\d{0,15}$/.test(text)
      for (const [method, url] of [
        ['POST', `${path}/read`],
        ['DELETE', path],
      ] as const) {
        const answer = await h.call(method, url, { token })
        // Another's may have it; and a lone dot is taken out of a path before it is sent.
        if (text !== '.') assert.ok(answer.status === 404 || (isId && answer.status === 403), told(text, answer))
      }
      for (const name of ['page', 'per_page', 'before_id']) {
        const answer = await h.call('GET', `${LIST}?${name}=${encodeURIComponent(text)}`, { token })
        if (text === '' || (isId && answer.status === 200)) assert.equal(answer.status, 200, told(text, answer))
        else refused(text, answer, name)
      }
      const level = await h.call('POST', '/api/v1/auth/level-assessment', { token, body: { game_level_id: text } })
      refused(text, level, 'game_level_id')
      const some = await h.call('POST', `${LIST}/read-all`, { token, body: { ids: [1, text] } })
      refused(text, some, 'ids.1')
      for (const [field, value] of [
        ['game_id', text],
        ['creator_id', text],
        ['player_ids', text],
        ['actor_id', text],
      ] as const) {
        refused(text, await send(h, cloudEvent('game_joined', { ...data, [field]: value })), `data.${field}`)
      }
      const players = await send(h, cloudEvent('game_joined', { ...data, player_ids: [text] }))
      refused(text, players, 'data.player_ids.0')
    })
  })
})
