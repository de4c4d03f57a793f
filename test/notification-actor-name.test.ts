import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Language } from '../src/language.ts'
import { NOTIFICATION_TYPES } from '../src/notification-types.ts'
import { announce } from '../src/notifications/announce.ts'
import { render, type TextValues, UNKNOWN_ACTOR } from '../src/notifications/catalogue.ts'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'

const h = harness()

const LANGUAGES: Language[] = ['fr', 'en']

const TYPES_WITHOUT_ACTOR = ['game_full', 'game_reminder', 'game_started', 'score_finalized']

const TRICKY_NAMES = [
  '$&',
  '$1',
  '{date}',
  '%s \\1',
  "O'Brien",
  '👩‍👩‍👧 Élo',
  '𝒜da',
  'e\u0301toile',
  'Un joueur',
  'A player',
  'a rejoint la partie',
]

// The generated names are well-formed Unicode without NUL, because PostgreSQL stores no other text.
const anyName = fc.oneof(
  fc.constantFrom(...TRICKY_NAMES),
  fc.string({ minLength: 1, unit: 'binary' }).filter(name => name.isWellFormed() && !name.includes('\0')),
  fc.string({ minLength: 1, unit: 'grapheme' }),
)

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const anyValues: fc.Arbitrary<Omit<TextValues, 'actorName'>> = fc.record({
  now: fc.constant(new Date('2026-01-10T12:00:00Z')),
  timeZone: fc.constantFrom('Europe/Paris', 'Asia/Tokyo'),
  startsAt: maybe(fc.constant(new Date('2026-01-17T17:00:00Z'))),
  playerCount: maybe(fc.integer({ min: 0, max: 4 })),
  sets: maybe(fc.constantFrom('', '6-4 6-3')),
}) as fc.Arbitrary<Omit<TextValues, 'actorName'>>

for (const type of NOTIFICATION_TYPES) {
  for (const language of LANGUAGES) {
    test(`for a ${type} message in ${language}, \`render\` returns the position of the actor’s name, or null if the message contains no name`, () => {
      fc.assert(
        fc.property(anyName, anyValues, (name, values) => {
          const { message, actorName } = render(type, language, { ...values, actorName: name })
          const unknown = render(type, language, values)
          assert.equal(unknown.actorName, null)
          if (TYPES_WITHOUT_ACTOR.includes(type)) {
            assert.equal(actorName, null)
            assert.equal(message, unknown.message)
            return
          }
          const characters = [...message]
          const end = actorName!.start + actorName!.length
          assert.equal(characters.slice(actorName!.start, end).join(''), name)
          const anonymous = [characters.slice(0, actorName!.start).join(''), characters.slice(end).join('')]
          assert.equal(anonymous.join(UNKNOWN_ACTOR[language]), unknown.message)
        }),
        { numRuns: 300 },
      )
    })
  }
}

test('after the deletion of a user, each message that named the user names an unknown actor instead', async () => {
  const { sql } = h.database
  const localTime = { now: h.clock.now(), timeZone: 'Europe/Paris' }
  const values = { startsAt: new Date('2027-01-16T17:00:00Z'), playerCount: 3, sets: '6-4 6-3' }
  const readers = await Promise.all(LANGUAGES.map(async locale => ({ locale, ...(await makeUser(h, { locale })) })))
  const names = [...TRICKY_NAMES, ...fc.sample(anyName, 20)]
  for (const [index, firstName] of names.entries()) {
    const actor = await makeUser(h, { firstName })
    const announcements = NOTIFICATION_TYPES.map(type => ({
      type,
      eventKey: `event ${index}`,
      recipientIds: readers.map(reader => reader.id),
      actorId: actor.id,
      values,
      data: {},
    }))
    await sql.begin(tx => announce(tx, announcements, localTime))
    await eraseUser(sql, actor.id)
  }
  for (const { id, locale } of readers) {
    const rows = await sql<{ message: string }>`select message from notification where user_id = ${id} order by id`
    assert.deepEqual(
      rows.map(row => row.message),
      names.flatMap(() => NOTIFICATION_TYPES.map(type => render(type, locale, { ...localTime, ...values }).message)),
    )
  }
})
