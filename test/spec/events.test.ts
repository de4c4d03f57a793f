// This file has one test for each sentence of the specification's chapter "Events".
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sendCode } from '../../src/auth/send-code.ts'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import { CATALOGUE } from '../../src/notifications/catalogue.ts'
import { startWorkers } from '../../src/outbox/workers.ts'
import { harness } from '../support/app.ts'
import { makeUser } from '../support/factories.ts'
import { cloudEvent, newGameId, report, send } from '../support/games.ts'
import { FROM, mailChannel, TEXTS } from '../support/outbox.ts'
import { newEmail, profile } from '../support/scenario.ts'
import { smtpServer } from '../support/smtp.ts'

const h = harness()

type User = { id: number; token: string }

async function readList({ token }: User) {
  return (await h.call('GET', '/api/v1/notifications', { token })).body.data
}

/** Creates the users Anna, Bruno, Chloé and David, and the id of a new game. Anna is the creator of the game. */
async function makeGame() {
  const [anna, bruno, chloe, david] = [
    await makeUser(h, { firstName: 'Anna' }),
    await makeUser(h, { firstName: 'Bruno' }),
    await makeUser(h, { firstName: 'Chloé' }),
    await makeUser(h, { firstName: 'David' }),
  ]
  return { anna, bruno, chloe, david, game_id: newGameId(), creator_id: anna.id }
}

describe('Events', () => {
  // The columns are: type, category, trigger, number of players after the event, actor, recipients, title. The actor is
  // true for Bruno, false for Anna, and undefined if the event has no actor. The recipients are the numbers of
  // notifications that Anna, Bruno, Chloé and David get.
  const rows = [
    ['game_joined', 'Matchs', 'a player joins the game', 2, true, [1, 0, 0, 0], 'Un joueur a rejoint la partie'],
    ['game_left', 'Matchs', 'a player leaves the game', 1, true, [1, 0, 0, 0], "Une place s'est libérée"],
    ['game_cancelled', 'Matchs', 'the creator cancels the game', 4, false, [0, 1, 1, 1], 'Partie annulée'],
    ['game_full', 'Matchs', 'the game is complete (4 of 4 players)', 4, false, [1, 1, 1, 1], 'Partie complète'],
    ['game_reminder', 'Matchs', 'reminder before the game', 4, undefined, [1, 1, 1, 1], 'Rappel de partie'],
    ['game_started', 'Matchs', 'the game has started', 4, undefined, [1, 1, 1, 1], 'La partie a commencé'],
    ['score_submitted', 'Scores', 'a player submits the score', 4, true, [1, 0, 1, 1], 'Score à valider'],
    ['score_validated', 'Scores', 'a player validates the score', 4, true, [1, 0, 1, 1], 'Score validé'],
    ['score_contested', 'Scores', 'a player contests the score', 4, true, [1, 0, 1, 1], 'Score contesté'],
    ['score_finalized', 'Scores', 'the score is finalized', 4, undefined, [1, 1, 1, 1], 'Score définitif'],
  ] as const

  test('"The service creates an in-app notification for a user when one of the following occurs."', async () => {
    const { anna, bruno, game_id, creator_id } = await makeGame()
    const players = { game_id, creator_id, player_ids: [anna.id, bruno.id], actor_id: bruno.id }
    for (const type of ['game_paused', 'score_deleted', 'Game_joined']) {
      assert.equal((await send(h, cloudEvent(type, players))).status, 422)
    }
    for (const type of ['game_created', 'game_updated']) assert.equal(await report(h, cloudEvent(type, players)), 0)
    assert.deepEqual(await Promise.all([anna, bruno].map(readList)), [[], []])
    assert.deepEqual(
      Object.keys(CATALOGUE),
      rows.map(([type]) => type),
    )
  })

  for (const [type, category, trigger, players, byBruno, recipients, title] of rows) {
    test(`"${type} | ${category} | ${trigger}"`, async () => {
      const { anna, bruno, chloe, david, game_id, creator_id } = await makeGame()
      const all = [anna, bruno, chloe, david]
      const actor = byBruno === undefined ? undefined : byBruno ? bruno.id : anna.id
      const isScore = type.startsWith('score_')
      const reported = cloudEvent(type, {
        game_id,
        creator_id,
        player_ids: all.slice(0, players).map(({ id }) => id),
        ...(actor && { actor_id: actor }),
        ...(isScore && { score: { id: 7, sets: '6-4 6-3' } }),
      })
      await report(h, reported)

      const lists = await Promise.all(all.map(readList))
      const types = lists.map(list => list.map((one: { type: string }) => one.type))
      assert.deepEqual(
        types,
        recipients.map(count => Array(count).fill(type)),
      )
      const [notification] = lists.flat()
      assert.deepEqual([notification.title, notification.data.game_id], [title, game_id])
      assert.equal(CATALOGUE[type].category, category)
    })
  }

  test('"An email containing the OTP is sent on request-otp."', async t => {
    const smtp = await smtpServer()
    const { sql, keys, now, log } = h.ctx
    const mailer = createSmtpMailer(smtp.url, { from: FROM })
    const channel = mailChannel(sendCode({ sql, mailer, keys, now, log, texts: TEXTS }))
    const worker = startWorkers(h.database.url, [channel], { log, now, observe: () => {} })
    t.after(async () => {
      await worker.stop()
      await smtp.close()
    })
    const email = newEmail()
    await h.call('POST', '/api/v1/auth/request-otp', { body: profile(email) })
    await smtp.until(() => smtp.mails.length === 1)
    const [mail] = smtp.mails
    assert.deepEqual(mail!.to, [email])
    const code = /^[0-9]{4}$/m.exec(mail!.parsed.text!)![0]
    assert.equal((await h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code } })).status, 200)
  })
})
