import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { computePlace } from '../client/dist/inbox/place.js'
import { relativeTime } from '../client/dist/inbox/relative-time.js'
import { findStoredLanguage } from '../client/dist/inbox/stored-language.js'
import { toLanguage } from '../client/dist/inbox/texts.js'
import { NOTIFICATION_TYPES } from '../src/notification-types.ts'
import { CATALOGUE } from '../src/notifications/catalogue.ts'

const NOW = new Date('2026-11-28T10:00:00Z')
const [MINUTE, HOUR, DAY] = [60, 3_600, 86_400]

describe('the relative time of a notification', () => {
  const rows: [seconds: number, fr: string, en: string][] = [
    [-30, 'à l’instant', 'just now'],
    [59, 'à l’instant', 'just now'],
    [MINUTE, 'il y a 1 minute', '1 minute ago'],
    [59 * MINUTE + 59, 'il y a 59 minutes', '59 minutes ago'],
    [HOUR, 'il y a 1 heure', '1 hour ago'],
    [23 * HOUR, 'il y a 23 heures', '23 hours ago'],
    [DAY, 'hier', 'yesterday'],
    [6 * DAY, 'il y a 6 jours', '6 days ago'],
    [7 * DAY, 'la semaine dernière', 'last week'],
    [31 * DAY, 'le mois dernier', 'last month'],
    [800 * DAY, 'il y a 2 ans', '2 years ago'],
  ]
  for (const [seconds, fr, en] of rows) {
    test(`the age of a notification that was created ${seconds} s ago is shown as "${en}"`, () => {
      const instant = new Date(NOW.getTime() - seconds * 1000)
      const texts = [relativeTime(instant, NOW, 'fr'), relativeTime(instant, NOW, 'en')]
      assert.deepEqual(
        texts.map(text => text.replaceAll('\u00a0', ' ')),
        [fr, en],
      )
    })
  }
})

test('the inbox is in English if its language tag is English, and otherwise in French', () => {
  const tags = ['fr', 'en', 'en-GB', 'EN-us', 'enm', 'de', '', null, undefined]
  assert.deepEqual(tags.map(toLanguage), ['fr', 'en', 'en', 'en', 'fr', 'fr', 'fr', 'fr', 'fr'])
})

test('the inbox recognizes the language of every title that the service writes', () => {
  for (const type of NOTIFICATION_TYPES) {
    for (const language of ['fr', 'en'] as const) {
      assert.equal(
        findStoredLanguage({ type, title: CATALOGUE[type].title[language] }),
        language,
        `${type}, ${language}`,
      )
    }
  }
})

test('the panel is within the viewport wherever the bell is, and covers the bell only if there is no other room', () => {
  const size = (max: number) => fc.integer({ min: 40, max })
  const sizes = fc.record({ width: size(2000), height: size(2000) })
  const bells = fc.record({ left: fc.integer({ min: -500, max: 2500 }), top: fc.integer({ min: -500, max: 2500 }) })
  fc.assert(
    fc.property(bells, sizes, sizes, fc.boolean(), (corner, panel, viewport, isRightToLeft) => {
      const bell = { ...corner, width: 44, height: 44 }
      const { left, top, width, height } = computePlace(bell, panel, viewport, isRightToLeft)
      assert.ok(left >= 8 && left + width <= viewport.width - 8)
      assert.ok(top >= 8 && top + height <= viewport.height - 8)
      const isBellVisible = bell.top >= 0 && bell.top + 44 <= viewport.height
      const room = Math.max(bell.top, viewport.height - bell.top - 44)
      if (isBellVisible && room >= 180) assert.ok(top >= bell.top + 44 || top + height <= bell.top)
    }),
  )
})
