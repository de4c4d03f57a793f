import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Language } from '../src/language.ts'
import { NOTIFICATION_TYPES, type NotificationType } from '../src/notification-types.ts'
import { CATALOGUE, render, type TextValues } from '../src/notifications/catalogue.ts'

const base: TextValues = {
  now: new Date('2026-01-10T12:00:00Z'),
  timeZone: 'Europe/Paris',
  actorName: 'Marie',
  startsAt: new Date('2026-01-17T17:00:00Z'),
  playerCount: 3,
  sets: '6-4 6-3',
}

// In the expected messages, \u00a0 is the no-break space and \u202f the narrow no-break space. Other spaces are
// ordinary.
const samedi = 'samedi 17\u00a0janvier à 18\u00a0h\u00a000'
const saturday = 'Saturday 17 January at 18:00'

const noDate = { startsAt: undefined }
const noNames = { startsAt: undefined, actorName: undefined }
const noScore = { sets: undefined, actorName: undefined }
const noCount = { startsAt: undefined, playerCount: undefined }

type Row = { when?: Partial<TextValues>; fr: string; en: string }

// In the first row of each type, all values are set. In most other rows, some values are missing.
const ROWS: Record<NotificationType, { category: string; fr: string; en: string; messages: Row[] }> = {
  game_joined: {
    category: 'Matchs',
    fr: 'Un joueur a rejoint la partie',
    en: 'A player joined',
    messages: [
      { fr: `Marie a rejoint la partie du ${samedi} (3/4).`, en: `Marie joined the game on ${saturday} (3/4).` },
      { when: noDate, fr: 'Marie a rejoint la partie (3/4).', en: 'Marie joined the game (3/4).' },
      { when: noCount, fr: 'Marie a rejoint la partie.', en: 'Marie joined the game.' },
      { when: noNames, fr: 'Un joueur a rejoint la partie (3/4).', en: 'A player joined the game (3/4).' },
      {
        when: { startsAt: new Date('2027-01-16T08:05:00Z') },
        fr: 'Marie a rejoint la partie du samedi 16\u00a0janvier 2027 à 9\u00a0h\u00a005 (3/4).',
        en: 'Marie joined the game on Saturday 16 January 2027 at 09:05 (3/4).',
      },
    ],
  },
  game_left: {
    category: 'Matchs',
    fr: "Une place s'est libérée",
    en: 'A spot opened up',
    messages: [
      {
        when: { playerCount: 2 },
        fr: `Marie a quitté la partie du ${samedi}. Il reste 2 places.`,
        en: `Marie left the game on ${saturday}. 2 spots left.`,
      },
      ...[
        { players: 4, fr: ' La partie est complète.', en: ' The game is full.' },
        { players: 3, fr: ' Il reste 1 place.', en: ' 1 spot left.' },
        { players: 2, fr: ' Il reste 2 places.', en: ' 2 spots left.' },
        { players: 1, fr: ' Il reste 3 places.', en: ' 3 spots left.' },
        { players: 0, fr: ' La partie est vide.', en: ' The game is empty.' },
        { players: undefined, fr: '', en: '' },
      ].map(({ players, fr, en }) => ({
        when: { ...noNames, playerCount: players },
        fr: `Un joueur a quitté la partie.${fr}`,
        en: `A player left the game.${en}`,
      })),
    ],
  },
  game_cancelled: {
    category: 'Matchs',
    fr: 'Partie annulée',
    en: 'Game cancelled',
    messages: [
      { fr: `Marie a annulé la partie du ${samedi}.`, en: `Marie cancelled the game on ${saturday}.` },
      { when: noNames, fr: 'Un joueur a annulé la partie.', en: 'A player cancelled the game.' },
    ],
  },
  game_full: {
    category: 'Matchs',
    fr: 'Partie complète',
    en: 'Game full',
    messages: [
      { fr: `Vous êtes 4 sur 4 pour la partie du ${samedi}.`, en: `You are 4 of 4 for the game on ${saturday}.` },
      { when: noDate, fr: 'Vous êtes 4 sur 4 pour la partie.', en: 'You are 4 of 4 for the game.' },
    ],
  },
  game_reminder: {
    category: 'Matchs',
    fr: 'Rappel de partie',
    en: 'Game reminder',
    messages: [
      { fr: `Votre partie commence le ${samedi}.`, en: `Your game starts on ${saturday}.` },
      {
        when: { now: new Date('2026-01-16T17:00:00Z') },
        fr: 'Votre partie commence demain, samedi 17\u00a0janvier, à 18\u00a0h\u00a000.',
        en: 'Your game starts tomorrow, Saturday 17 January, at 18:00.',
      },
      {
        when: { now: new Date('2026-01-17T15:00:00Z') },
        fr: "Votre partie commence aujourd'hui à 18\u00a0h\u00a000.",
        en: 'Your game starts today at 18:00.',
      },
      { when: noDate, fr: 'Votre partie commence bientôt.', en: 'Your game starts soon.' },
    ],
  },
  game_started: {
    category: 'Matchs',
    fr: 'La partie a commencé',
    en: 'Game on',
    messages: [
      {
        fr: 'Votre partie de 18\u00a0h\u00a000 a commencé. Bon match\u202f!',
        en: 'Your 18:00 game has started. Enjoy!',
      },
      { when: noDate, fr: 'Votre partie a commencé. Bon match\u202f!', en: 'Your game has started. Enjoy!' },
    ],
  },
  score_submitted: {
    category: 'Scores',
    fr: 'Score à valider',
    en: 'Score to confirm',
    messages: [
      {
        fr: 'Marie a saisi le score 6-4 6-3. Validez-le ou contestez-le.',
        en: 'Marie entered 6-4 6-3. Confirm or contest it.',
      },
      {
        when: noScore,
        fr: 'Un joueur a saisi le score. Validez-le ou contestez-le.',
        en: 'A player entered the score. Confirm or contest it.',
      },
    ],
  },
  score_validated: {
    category: 'Scores',
    fr: 'Score validé',
    en: 'Score confirmed',
    messages: [
      { fr: 'Marie a validé le score 6-4 6-3.', en: 'Marie confirmed 6-4 6-3.' },
      { when: noScore, fr: 'Un joueur a validé le score.', en: 'A player confirmed the score.' },
    ],
  },
  score_contested: {
    category: 'Scores',
    fr: 'Score contesté',
    en: 'Score contested',
    messages: [
      { fr: 'Marie conteste le score 6-4 6-3.', en: 'Marie contests 6-4 6-3.' },
      { when: noScore, fr: 'Un joueur conteste le score.', en: 'A player contests the score.' },
    ],
  },
  score_finalized: {
    category: 'Scores',
    fr: 'Score définitif',
    en: 'Final score',
    messages: [
      {
        fr: `Le score de la partie du ${samedi} est définitif\u00a0: 6-4 6-3.`,
        en: `The score of the game on ${saturday} is final: 6-4 6-3.`,
      },
      {
        when: noDate,
        fr: 'Le score de la partie est définitif\u00a0: 6-4 6-3.',
        en: 'The score of the game is final: 6-4 6-3.',
      },
      {
        when: { ...noDate, ...noScore },
        fr: 'Le score de la partie est définitif.',
        en: 'The score of the game is final.',
      },
    ],
  },
}

test('NOTIFICATION_TYPES lists the ten types of the specification and no others', () => {
  assert.deepEqual([...NOTIFICATION_TYPES], Object.keys(ROWS))
})

for (const type of NOTIFICATION_TYPES) {
  test(`${type} has the expected category, titles and messages`, () => {
    const { category, fr, en, messages } = ROWS[type]
    assert.equal(CATALOGUE[type].category, category)
    for (const row of messages) {
      const [french, english] = [
        render(type, 'fr', { ...base, ...row.when }),
        render(type, 'en', { ...base, ...row.when }),
      ]
      assert.deepEqual([french.title, french.message], [fr, row.fr])
      assert.deepEqual([english.title, english.message], [en, row.en])
    }
  })
}

const language = fc.constantFrom<Language>('fr', 'en')

test('a message contains the actor’s name unchanged', () => {
  const named = NOTIFICATION_TYPES.filter(type => render(type, 'fr', base).message.includes('Marie'))
  assert.equal(named.length, 6)
  const tricky = fc.constantFrom(
    '$&',
    "$'",
    '$1',
    '{date}',
    '{A}',
    '%s',
    '<b>',
    '&amp;',
    'Zoë 👩‍👩‍👧',
    'e\u0301',
    '\u202e',
  )
  const name = fc.oneof(tricky, fc.string({ minLength: 1, unit: 'binary' }))
  fc.assert(
    fc.property(fc.constantFrom(...named), language, name, (type, language, actorName) => {
      const [before, after, ...more] = render(type, language, { ...base, actorName: '\u0001' }).message.split('\u0001')
      assert.deepEqual(more, [])
      assert.equal(render(type, language, { ...base, actorName }).message, `${before}${actorName}${after}`)
    }),
  )
})

test('a message is a complete sentence even if some values are missing', () => {
  const instant = fc.date({ min: new Date('0001-01-03'), max: new Date('9999-12-30'), noInvalidDate: true })
  const maybe = <T>(known: fc.Arbitrary<T>) => fc.option(known, { nil: undefined })
  const anyValues: fc.Arbitrary<TextValues> = fc.record({
    now: instant,
    timeZone: fc.constantFrom('Europe/Paris', 'Asia/Tokyo', 'America/St_Johns', 'Pacific/Apia', 'UTC'),
    actorName: maybe(fc.constantFrom('', 'Marie', 'Jean Paul')),
    startsAt: maybe(instant),
    playerCount: maybe(fc.integer({ min: 0, max: 4 })),
    sets: maybe(fc.constantFrom('', '6-4 6-3')),
  })
  fc.assert(
    fc.property(fc.constantFrom(...NOTIFICATION_TYPES), language, anyValues, (type, language, values) => {
      const { message } = render(type, language, values)
      assert.match(message, /^\p{Lu}.*[.!]$/u)
      assert.doesNotMatch(message, /undefined|null|NaN|Invalid|object/)
      assert.doesNotMatch(message, /\s\s|\s[.,)]/)
      // In a French message, the spaces around the "h" of a time and before ":" and "!" must be no-break spaces. The
      // first pattern finds ordinary spaces at these places. The second pattern finds no-break spaces, which an English
      // message must not contain.
      assert.doesNotMatch(message, language === 'fr' ? /\d h|h \d| [:!]/ : /[\u00a0\u202f]/)
    }),
    { numRuns: 1000 },
  )
})
