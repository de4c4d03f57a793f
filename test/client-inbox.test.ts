import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { relativeTime } from '../client/dist/inbox/relative-time.js'
import { toLanguage } from '../client/dist/inbox/texts.js'

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
