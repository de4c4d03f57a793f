import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { formatNameForMail, formatNameForText, isFirstName, isName } from '../src/accounts/names.ts'
import { hasFormatControl, PLAIN_LINE } from '../src/http/format/plain-text.ts'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent, newGameId, send } from './support/games.ts'
import { newEmail, profile } from './support/scenario.ts'

const h = harness()

// Unicode 16 assigns code points up to U+10FFFF. The surrogates are not characters.
const ALL_CHARACTERS = Array.from({ length: 0x110000 }, (_, code) => code)
  .filter(code => code < 0xd800 || code > 0xdfff)
  .map(code => String.fromCodePoint(code))

// Generates names that PostgreSQL can store: well-formed Unicode without NUL.
const storedName = fc.oneof(
  fc.string({ minLength: 1, maxLength: 120, unit: 'grapheme' }),
  fc.string({ minLength: 1, maxLength: 120, unit: 'binary' }).filter(name => name.isWellFormed()),
  fc.string({ minLength: 1, maxLength: 120, unit: fc.constantFrom('é', 'e\u0301', 'א', 'م', '\u202e', '\u2069', ' ') }),
  fc.string({ minLength: 1, maxLength: 120, unit: fc.constantFrom('👩‍👩‍👧', '🇫🇷', 'न', '्', '\u200d', "'", '-') }),
)

const withoutIsolates = (text: string) => text.replace(/^\u2068(.*)\u2069$/s, '$1')

describe('the names that a sign-up may contain', () => {
  const request = (body: Record<string, unknown>) =>
    h.call('POST', '/api/v1/auth/request-otp', { body: { ...profile(newEmail()), ...body } })

  const names: [string, first: boolean, last: boolean][] = [
    ["Jean-Pierre O'Neill d’Ormesson", true, true],
    ['Лев', true, true],
    ['مريم', true, true],
    ['می\u200cنا', true, true],
    ['ക്\u200d', true, true],
    ['João 2', true, true],
    ['Zoë 👩‍👩‍👧', true, true],
    ['X Æ A-12', true, true],
    ['wwwilliam', true, true],
    ['42', false, true],
    ['👩‍👩‍👧', false, true],
    ['\u3164', false, true],
    ['Leo\u202e', false, false],
    ['Leo\u2066', false, false],
    ['Leo\u200f', false, false],
    ['Leo\u00ad', false, false],
    ['\u200b', false, false],
    ['\ufeff', false, false],
    ['Leo\u{e0041}', false, false],
    ['Leo\u{1d173}', false, false],
    ['https://evil.example', false, false],
    ['WWW.evil.example', false, false],
    ['leo@evil.example', false, false],
    ['leo＠evil.example', false, false],
    ['ｈｔｔｐ：／／evil.example', false, false],
    ['ｗｗｗ．evil.example', false, false],
  ]
  for (const [name, first, last] of names) {
    const spelled = JSON.stringify(name).replace(/[^\x20-\x7e]/gu, char => `\\u{${char.codePointAt(0)!.toString(16)}}`)
    test(`a sign-up ${first ? 'may' : 'may not'} have the first name ${spelled}, and ${last ? 'may' : 'may not'} have it as the last name`, async () => {
      for (const [field, isAllowed] of [
        ['first_name', first],
        ['last_name', last],
      ] as const) {
        const answer = await request({ [field]: name })
        assert.equal(answer.status, isAllowed ? 200 : 422, field)
        if (!isAllowed) assert.deepEqual(Object.keys(answer.body.errors), [field])
      }
    })
  }

  test('no format control except ZWJ and ZWNJ is part of an accepted name, place or score', () => {
    const line = new RegExp(PLAIN_LINE, 'u')
    for (const char of ALL_CHARACTERS) {
      const isControl = /\p{Cf}/u.test(char) && char !== '\u200c' && char !== '\u200d'
      assert.equal(hasFormatControl(`Leo${char}`), isControl, char)
      assert.equal(isName(`Leo${char}`), !isControl && char.normalize('NFKC') !== '@', char)
      // The pattern of the OpenAPI document contains no characters beyond U+FFFF.
      if (isControl && char.length === 1) assert.doesNotMatch(char, line)
      if (!/[\p{Cc}\p{Cf}\u2028\u2029]/u.test(char)) assert.match(char, line)
    }
  })

  test('`place` and `sets` of an event get a 422 if they contain a format control', async () => {
    const data = { game_id: newGameId(), creator_id: 1, player_ids: [1], actor_id: 1 }
    for (const text of ['Court\u202e', 'Court\u2067', 'Court\u200e', 'Court\ufeff', 'Court\u{e0041}']) {
      const place = await send(h, cloudEvent('game_updated', { ...data, place: text }))
      assert.deepEqual([place.status, Object.keys(place.body.errors)], [422, ['data.place']])
      const score = await send(h, cloudEvent('score_submitted', { ...data, score: { sets: text } }))
      assert.deepEqual([score.status, Object.keys(score.body.errors)], [422, ['data.score.sets']])
    }
    assert.equal((await send(h, cloudEvent('game_updated', { ...data, place: 'زمین\u200cها' }))).status, 202)
  })
})

describe('a name in a notification', () => {
  test('the beginning of a name appears, at most 40 characters, without format controls', () => {
    assert.equal(formatNameForText('Marie'), 'Marie')
    assert.equal(formatNameForText('Zoë 👩‍👩‍👧'), 'Zoë 👩‍👩‍👧')
    assert.equal(formatNameForText('a'.repeat(41)), 'a'.repeat(40))
    assert.equal(formatNameForText(`${'a'.repeat(39)}e\u0301`), 'a'.repeat(39))
    assert.equal(formatNameForText('Leo\u202e'), 'Leo')
    assert.equal(formatNameForText('\u200b'), undefined)
    fc.assert(
      fc.property(storedName, name => {
        const shown = formatNameForText(name)
        if (shown === undefined) return
        const inner = withoutIsolates(shown)
        assert.ok([...inner].length <= 40)
        assert.ok(!hasFormatControl(inner))
        assert.notEqual(inner.trim(), '')
      }),
      { numRuns: 3000 },
    )
  })

  test('only a name with a right-to-left letter is isolated, so a plain name stays plain', () => {
    for (const name of ['דוד', 'Leo אב', 'مريم', 'ܡܪܝܡ', 'ߡߊ', '𐤀𐤁', '𞤀𞤣']) {
      assert.equal(formatNameForText(name), `\u2068${name}\u2069`)
    }
    for (const name of ['Marie', 'Лев', '李', 'नीना', '123', '👩‍👩‍👧']) assert.equal(formatNameForText(name), name)
  })

  test('a stored name with a direction mark, or with the words of a stranger, does not change the sentence after it', async () => {
    const reader = await makeUser(h, { locale: 'fr' })
    const sets = '6-1 6-0'
    for (const [firstName, shown] of [
      ['Leo\u202e', 'Leo'],
      ['דוד\u2069', '\u2068דוד\u2069'],
      ['Votre compte va être fermé\u00a0: confirmez sur https://court-side.evil.example/v.', undefined],
      ['\u202e', 'Un joueur'],
    ] as const) {
      const actor = await makeUser(h, { firstName })
      const data = { game_id: newGameId(), creator_id: reader.id, player_ids: [reader.id, actor.id] }
      await send(h, cloudEvent('score_submitted', { ...data, actor_id: actor.id, score: { sets } }))
      const { body } = await h.call('GET', '/api/v1/notifications', { token: reader.token })
      const expected = shown ?? [...firstName].slice(0, 40).join('').trim()
      assert.equal(body.data[0].message, `${expected} a saisi le score ${sets}. Validez-le ou contestez-le.`)
    }
  })

  test('a deletion replaces the whole name in other users’ notifications, isolates included', async () => {
    const reader = await makeUser(h, { locale: 'fr' })
    const actor = await makeUser(h, { firstName: 'דוד' })
    const data = { game_id: newGameId(), creator_id: reader.id, player_ids: [reader.id, actor.id] }
    await send(h, cloudEvent('score_submitted', { ...data, actor_id: actor.id, score: { sets: '6-1 6-0' } }))
    await eraseUser(h.database.sql, actor.id)
    const { body } = await h.call('GET', '/api/v1/notifications', { token: reader.token })
    assert.equal(body.data[0].message, 'Un joueur a saisi le score 6-1 6-0. Validez-le ou contestez-le.')
  })
})

describe('a name in a mail', () => {
  const names: [string, string | undefined][] = [
    ['Marie', 'Marie'],
    ["Jean-Pierre O'Neill", "Jean-Pierre O'Neill"],
    ['Anne‑Lise d’Ormesson', 'Anne‑Lise d’Ormesson'],
    ['e\u0301toile', '\u00e9toile'],
    ['नीना', 'नीना'],
    ['דוד', 'דוד'],
    ['Votre compte va être fermé cliquez vite ici', 'Votre compte va être fermé cliquez vite'],
    ['Votre compte : evil.example/v', 'V'],
    ['https://evil.example', 'h'],
    ['Zoë 2', 'Z'],
    ['✓ Écrivez-nous !', '\u00c9'],
    ['<script>x</script>', 's'],
    ['Leo\u202e', 'L'],
    ['Leo\r\nBcc: x', 'L'],
    ['42', undefined],
    ['\u3164', undefined],
    ['👩‍👩‍👧', undefined],
  ]
  for (const [name, shown] of names) {
    test(`the name ${JSON.stringify(name)} appears in a mail as ${JSON.stringify(shown)}`, () => {
      assert.equal(formatNameForMail(name), shown)
    })
  }

  test('a name in a mail contains only letters, marks, spaces, hyphens and apostrophes, at most 40 characters', () => {
    fc.assert(
      fc.property(storedName, name => {
        const shown = formatNameForMail(name)
        if (shown === undefined) return assert.ok(!isFirstName(name))
        assert.match(shown, /^[\p{L}\p{M} '’ʼ‐‑-]{1,40}$/u)
        assert.match(shown, /\p{L}/u)
      }),
      { numRuns: 3000 },
    )
  })
})
