import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { MAX_PLAINTEXT_BYTES } from '../src/reach/encryption.ts'
import { findRetryTime, judge } from '../src/reach/push-answer.ts'
import { buildTag, composeMessage, type Shown } from '../src/reach/push-message.ts'

const SHOWN: Shown = {
  id: 7,
  type: 'game_joined',
  title: 'Un joueur a rejoint la partie',
  message: 'Zoé a rejoint la partie (2/4).',
  locale: 'fr',
  gameId: 42,
  isUrgent: false,
  unread: 3,
  link: 'https://app.example/games/42',
}
const compose = (changes: Partial<Shown> = {}) => JSON.parse(composeMessage({ ...SHOWN, ...changes }).toString())

test('a message is declarative, and has the badge at both places', () => {
  assert.deepEqual(compose(), {
    web_push: 8030,
    app_badge: 3,
    notification: {
      title: 'Un joueur a rejoint la partie',
      body: 'Zoé a rejoint la partie (2/4).',
      lang: 'fr',
      dir: 'auto',
      tag: 'game-42',
      navigate: 'https://app.example/games/42',
      app_badge: 3,
      renotify: false,
      data: { id: 7, type: 'game_joined', game_id: 42 },
    },
  })
})

test('an urgent message has its own tag and alerts again', () => {
  const { tag, renotify } = compose({ isUrgent: true }).notification
  assert.deepEqual([tag, renotify], ['game-42-urgent', true])
})

test('a message without a body carries the title only', () => {
  const { notification } = compose({ message: undefined })
  assert.equal('body' in notification, false)
  assert.equal(notification.title, SHOWN.title)
})

test('a notification that names no game has a tag of its own', () => {
  assert.equal(buildTag({ id: 7, gameId: undefined, isUrgent: false }), 'notification-7')
})

describe('a body that is too long', () => {
  const graphemes = (text: string) => Array.from(new Intl.Segmenter('fr').segment(text), ({ segment }) => segment)

  test('is cut at a grapheme and ends with an ellipsis, and fills the message', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'é', 'e\u0301', '"', '\\', '👨‍👩‍👧‍👦', '🇫🇷', '中', '\u0007'), {
          minLength: 4_000,
          maxLength: 4_200,
        }),
        parts => {
          const message = parts.join('')
          const bytes = composeMessage({ ...SHOWN, message })
          assert.ok(bytes.length <= MAX_PLAINTEXT_BYTES)
          const { body } = JSON.parse(bytes.toString()).notification
          assert.ok(body.endsWith('…'))
          const kept = graphemes(body.slice(0, -1))
          assert.deepEqual(kept, graphemes(message).slice(0, kept.length))
          const next = graphemes(message)[kept.length]!
          const longer = Buffer.byteLength(JSON.stringify(next)) - 2
          assert.ok(bytes.length + longer > MAX_PLAINTEXT_BYTES, 'one more grapheme would have fitted')
        },
      ),
      { numRuns: 20 },
    )
  })

  test('of exactly the maximum length stays whole', () => {
    const left = MAX_PLAINTEXT_BYTES - composeMessage({ ...SHOWN, message: '' }).length
    const whole = 'a'.repeat(left)
    assert.equal(compose({ message: whole }).notification.body, whole)
    assert.equal(compose({ message: `${whole}a` }).notification.body, `${'a'.repeat(left - 3)}…`)
  })
})

describe('the answer of a push service', () => {
  const NOW = new Date('2026-11-28T10:00:00.000Z')
  const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000)
  const tries = { attempts: 1, deadline: at(86_400) }
  const outcomeOf = (status: number) => judge({ status, retryAfter: undefined }, tries, NOW).outcome

  for (const [outcome, ...statuses] of [
    ['delivered', 200, 201, 202, 204],
    ['gone', 404, 410],
    ['rejected', 400, 401, 403],
    ['failed', 429, 500, 502, 503, 504],
    ['refused', 413, 301, 302, 307, 308, 405, 406, 415, 422],
  ] as const) {
    test(`means "${outcome}" with the status ${statuses.join(', ')}`, () => {
      for (const status of statuses) assert.equal(outcomeOf(status), outcome, String(status))
    })
  }

  test('causes a retry only if the service asks for patience', () => {
    for (const status of [201, 404, 410, 400, 401, 403, 413, 302, 405]) {
      assert.equal(judge({ status, retryAfter: '60' }, tries, NOW).retryAt, undefined)
    }
    assert.deepEqual(judge({ status: 429, retryAfter: '60' }, tries, NOW).retryAt, at(60))
  })

  test('decides the wait by Retry-After, as seconds or as a date', () => {
    assert.deepEqual(findRetryTime(tries, '120', NOW), at(120))
    assert.deepEqual(findRetryTime(tries, at(120).toUTCString(), NOW), at(120))
  })

  for (const text of [undefined, '0', '1', '-5', '1.5', 'soon', '', 'Sat, 01 Jan 2000 00:00:00 GMT']) {
    test(`with Retry-After ${text} leaves the own wait of 3 s`, () => {
      assert.deepEqual(findRetryTime(tries, text, NOW), at(3))
    })
  }

  test('never moves the next attempt beyond the deadline', () => {
    for (const text of ['999999999', '99999999999', '9'.repeat(400)]) {
      assert.deepEqual(findRetryTime(tries, text, NOW), tries.deadline, text.slice(0, 20))
    }
  })

  test('doubles the wait up to 10 minutes', () => {
    const waits = [1, 2, 3, 8, 9, 50].map(attempts => findRetryTime({ ...tries, attempts }, undefined, NOW))
    assert.deepEqual(waits, [3, 6, 12, 384, 600, 600].map(at))
  })
})
