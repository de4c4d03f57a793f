import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { canonicalEmail } from '../src/auth/email-address.ts'
import { preferredLanguage } from '../src/language.ts'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { signUp } from './support/scenario.ts'

// Generates any sequence of UTF-16 code units, including NUL and lone surrogates.
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.nat({ max: 0xffff }).map(unit => String.fromCharCode(unit)) }),
  fc.string(),
)
// Generates text that Node allows in a header value.
const headerText = fc.oneof(
  fc.string(),
  fc.string({
    unit: fc.constantFrom(9, 32, ...span(0x21, 0x7e), ...span(0x80, 0xff)).map(n => String.fromCharCode(n)),
  }),
)

function span(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

describe('canonicalEmail', () => {
  const label = fc.oneof(fc.stringMatching(/^[a-zA-Z0-9-]{1,20}$/), fc.string({ unit: 'grapheme', minLength: 1 }))
  const domain = fc.array(label, { minLength: 1, maxLength: 4 }).map(labels => labels.join('.'))
  const local = fc.oneof(fc.stringMatching(/^[a-zA-Z0-9!#$%&'*+/=?^_`{|}~.-]{1,70}$/), anyText)
  const written = fc.oneof(
    fc.emailAddress({ size: '+1' }),
    fc.tuple(local, fc.oneof(domain, fc.domain(), anyText)).map(([name, host]) => `${name}@${host}`),
    anyText,
  )

  test('`canonicalEmail` returns only allowed characters, and does not change an address that is already canonical', () => {
    let accepted = 0
    fc.assert(
      fc.property(written, address => {
        const canonical = canonicalEmail(address)
        if (canonical === undefined) return
        accepted += 1
        assert.equal(canonicalEmail(canonical), canonical)
        assert.match(canonical, /^[a-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]+$/)
        assert.ok(canonical.length <= 254)
      }),
      { numRuns: 20_000 },
    )
    assert.ok(accepted > 1000, String(accepted))
  })

  test('addresses that differ only in case have the same canonical form', () => {
    fc.assert(
      fc.property(fc.emailAddress(), address => {
        assert.equal(canonicalEmail(address.toUpperCase()), canonicalEmail(address.toLowerCase()))
      }),
      { numRuns: 5000 },
    )
  })
})

describe('preferredLanguage', () => {
  test('only the first 500 characters of Accept-Language count', () => {
    const filler = 'de;q=0.1,'.repeat(40)
    assert.equal(preferredLanguage(`${filler}en`), 'en')
    assert.equal(preferredLanguage(`${filler.repeat(40)}en`), 'fr')
  })

  const range = fc.constantFrom('fr', 'en', 'en-GB', 'FR-ca', 'de', '*', 'e', 'french', '')
  const weight = fc.oneof(fc.constantFrom('', ';q=0', ';q=1', ';q=0.5', ';q=', ';q=x', ';q=9', ';Q=0.1'), headerText)
  const header = fc.array(fc.tuple(range, weight)).map(ranges => ranges.map(parts => parts.join('')).join(','))

  test('`preferredLanguage` returns French or English for any header, and English only if the header contains "en" or "*"', () => {
    fc.assert(
      fc.property(fc.oneof(header, headerText), text => {
        const language = preferredLanguage(text)
        assert.ok(language === 'fr' || (language === 'en' && /en|\*/i.test(text)), language)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('arbitrary input over HTTP', () => {
  const h = harness()

  const anyValue = fc.oneof(
    fc.jsonValue({ stringUnit: 'binary' }),
    anyText,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom('', ' \t', '\0', '\ud800', 2 ** 53, -1, 0, true, null, '0427', '__proto__'),
  )
  const validSignUp = { email: 'a@example.com', first_name: 'A', last_name: 'B', accept_cgu: true }
  const endpoints: [string, string, Record<string, unknown>][] = [
    ['POST', '/api/v1/auth/request-otp', validSignUp],
    ['POST', '/api/v1/auth/verify-otp', { email: 'a@example.com', code: '0427' }],
    ['POST', '/api/v1/auth/level-assessment', { game_level_id: 1 }],
    ['DELETE', '/api/v1/auth/me', { code: '0427' }],
    ['POST', '/api/v1/notifications/read-all', { ids: [1] }],
    [
      'PATCH',
      '/api/v1/notification-preferences',
      {
        types: { game_full: { push: false } },
        email_paused: true,
        quiet_hours: { from: '21:00' },
        time_zone: 'Asia/Tokyo',
      },
    ],
  ]
  for (const [method, url, fields] of endpoints) {
    const names = Object.keys(fields)

    test(`${method} ${url} answers any body with 200, or with a 422 that names the invalid fields`, async () => {
      const { token } = await signUp(h)
      const body = fc.oneof(
        // One field is arbitrary and all other fields are valid, so the answer depends only on the arbitrary field.
        fc.tuple(fc.constantFrom(...names), anyValue).map(([name, value]) => ({ ...fields, [name]: value })),
        fc.record(Object.fromEntries(names.map(name => [name, anyValue])), { requiredKeys: [] }),
        anyValue,
      )
      await fc.assert(
        fc.asyncProperty(body, async value => {
          // The clock moves past the cooldown of 60 s. Otherwise the service would refuse most of the sign-ups.
          if (url.endsWith('request-otp')) h.clock.advance(60_000)
          const answer = await h.call(method, url, { token, body: JSON.stringify(value) })
          assert.ok([200, 422].includes(answer.status), `${answer.status} ${answer.text}`)
          if (answer.status !== 422) return
          const named = Object.keys(answer.body.errors)
          assert.ok(named.length > 0)
          for (const field of named)
            assert.ok([...names, 'body'].includes(field.split('.', 1)[0]!) || hasForbiddenCharacter(value))
        }),
        { numRuns: 200 },
      )
    })
  }

  test('a list request with any text as page, per_page or before_id gets a 200, or a 422 that names the parameter', async () => {
    const { token } = await signUp(h)
    const number = fc.oneof(
      anyText.filter(isStorable),
      fc.integer().map(String),
      fc.bigInt({ min: -1n, max: 10n ** 16n }).map(String),
    )
    const query = fc.record({ page: number, per_page: number, before_id: number }, { requiredKeys: [] })
    await fc.assert(
      fc.asyncProperty(query, async wanted => {
        const answer = await h.call('GET', `/api/v1/notifications?${new URLSearchParams(wanted)}`, { token })
        assert.ok([200, 422].includes(answer.status), `${answer.status} ${answer.text}`)
        if (answer.status === 422) for (const field of Object.keys(answer.body.errors)) assert.ok(field in wanted)
        else {
          for (const text of Object.values(wanted)) assert.ok(text === '' || Number.isSafeInteger(Number(text)), text)
          assert.equal(answer.body.meta.current_page, Number(wanted.page || 1))
        }
      }),
      { numRuns: 300 },
    )
  })

  test('a list request with any query string gets a 200 or a 422', async () => {
    const { token } = await signUp(h)
    await fc.assert(
      fc.asyncProperty(fc.webQueryParameters({ size: 'large' }), async query => {
        const answer = await h.call('GET', `/api/v1/notifications?${query}`, { token })
        assert.ok([200, 422].includes(answer.status), `${answer.status} ${answer.text}`)
      }),
      { numRuns: 100 },
    )
  })

  test('a request with any text as the notification id in its path gets 403 or 404, and changes nothing', async () => {
    const { token } = await signUp(h)
    const mine = await makeUser(h)
    await makeNotifications(h, mine.id, 1)
    const segment = fc
      .oneof(anyText.filter(isStorable).map(encodeURIComponent), fc.webSegment(), fc.bigInt().map(String))
      // The HTTP client removes the segments `.` and `..` from a path, so the test does not send these segments.
      .filter(text => !/^(\.|%2e){1,2}$/i.test(text))
    await fc.assert(
      fc.asyncProperty(segment, async id => {
        for (const [method, path] of [
          ['POST', `/api/v1/notifications/${id}/read`],
          ['DELETE', `/api/v1/notifications/${id}`],
        ] as const) {
          const answer = await h.call(method, path, { token })
          assert.ok([403, 404].includes(answer.status), `${answer.status} ${answer.text}`)
        }
      }),
      { numRuns: 200 },
    )
    const unread = await h.call('GET', '/api/v1/notifications/unread-count', { token: mine.token })
    assert.equal(unread.body.unread_count, 1)
  })

  test('a request with any Accept-Language header is answered in French or English', async () => {
    await fc.assert(
      fc.asyncProperty(headerText, async language => {
        const headers = { 'accept-language': language }
        const answer = await h.call('GET', '/api/v1/nowhere', { headers })
        assert.ok(['Introuvable.', 'Not found.'].includes(answer.body.message), answer.text)
      }),
      { numRuns: 200 },
    )
  })

  test('protected routes answer an invalid Authorization header with 401, and public routes ignore the header', async () => {
    const { token } = await signUp(h)
    const damaged = fc
      .tuple(fc.nat({ max: 400 }), headerText)
      .map(([at, more]) => `Bearer ${token.slice(0, at)}${more}`)
    const header = fc.oneof(
      headerText,
      headerText.map(text => `Bearer ${text}`),
      damaged.filter(text => text.trim() !== `Bearer ${token}`),
    )
    await fc.assert(
      fc.asyncProperty(header, async authorization => {
        const headers = { authorization }
        for (const [method, url] of [
          ['GET', '/api/v1/auth/me'],
          ['POST', '/api/v1/auth/refresh'],
          ['POST', '/internal/v1/events'],
        ] as const) {
          assert.equal((await h.call(method, url, { headers })).status, 401, url)
        }
        const asked = await h.call('POST', '/api/v1/auth/request-otp', { headers, body: {} })
        assert.equal(asked.status, 422)
      }),
      { numRuns: 200 },
    )
  })
})

function isStorable(text: string): boolean {
  return text.isWellFormed()
}

/**
 * Returns whether a body or query contains NUL or a lone surrogate. If it does, the endpoint answers with a 422 that
 * names the field of this character, even if the endpoint does not use the field.
 */
function hasForbiddenCharacter(value: unknown): boolean {
  return /\\u0000|\\ud[89a-f]/.test(JSON.stringify(value))
}
