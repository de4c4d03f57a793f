import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { chooseLevel, signUp, skip, stage } from '../support/browser.ts'
import { cancelGame, readPushes, type Sent, subscribe, visitWithPush } from '../support/local-push.ts'
import { createPushDelivery, readBadges, readBanners } from '../support/push-delivery.ts'
import { readMailbox } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const LINK = 'https://club.example/games/'
const s = stage({
  env: {
    EMAIL_AFTER: '1s',
    EMAIL_AFTER_URGENT: '1s',
    LINK_TEMPLATE: `${LINK}{game_id}`,
    PUBLIC_URL: 'https://courtside.example',
  },
})

/** Returns the unsubscribe links of the only mail to an address that is no code. */
async function waitForDigest(email: string) {
  const find = async () =>
    (await readMailbox(s.service)).find(mail => mail.to === email && /unsubscribe/.test(mail.text))
  await waitUntil(async () => (await find()) !== undefined)
  const { text } = (await find())!
  const links = [...text.matchAll(/https:\/\/courtside\.example(\/unsubscribe\/\S+)/g)].map(([, path]) => path!)
  return { text, all: links.find(link => !link.includes('?'))!, one: links.find(link => link.includes('?type='))! }
}

async function readStored(email: string) {
  const [row] = await s.sql<{ email_paused: boolean; types: Record<string, { email?: boolean }> }>`
    select email_paused, types from notification_preference
    where user_id = (select id from app_user where email = ${email})`
  return row
}

/** Waits until each push has either left or been dropped. */
async function waitUntilNothingWaits(): Promise<void> {
  await waitUntil(async () => {
    const [row] = await s.sql<{ waiting: number }>`
      select count(*)::integer as waiting from outbox where channel in ('announcement', 'push')`
    return row!.waiting === 0
  })
}

suite('a player whose app is closed', { skip, timeout: 240_000 }, () => {
  test('gets a banner about a cancelled game, and no push after the logout', async () => {
    const email = 'away@example.com'
    const origin = s.service.address
    const page = await visitWithPush(s)
    const context = page.context()
    await signUp(page, email)
    await chooseLevel(page)
    await subscribe(page)
    const other = await context.newPage()
    const { deliver } = await createPushDelivery(other, origin)
    await page.close()

    await cancelGame(s, email, 42)
    await waitUntil(async () => (await readPushes(s)).length === 1)
    const [push] = (await readPushes(s)) as [Sent]
    assert.equal(push.urgency, 'high')
    await deliver(JSON.stringify(push.message))
    const [banner] = await readBanners(other, origin)
    assert.equal(banner!.title, 'Partie annulée')
    assert.match(banner!.body, /annulé/)
    assert.deepEqual([banner!.tag, banner!.lang], ['game-42-urgent', 'fr'])
    assert.deepEqual([banner!.data.navigate, banner!.data.game_id], [`${LINK}42`, 42])
    assert.deepEqual(await readBadges(other, origin), [1])

    await other.goto('/')
    await other.getByRole('button', { name: 'Notifications, 1 non lue' }).waitFor()
    await other.getByRole('button', { name: 'Se déconnecter' }).click()
    await other.getByText('Votre session est terminée.').waitFor()
    assert.equal(await other.evaluate('localStorage.getItem("test.subscription")'), null)
    await cancelGame(s, email, 43)
    await waitUntilNothingWaits()
    assert.equal((await readPushes(s)).length, 1)
    assert.deepEqual(
      s.complaints.filter(text => !text.includes('401 (Unauthorized)')),
      [],
    )
    s.complaints.length = 0
    await context.close()
  })

  test('gets a mail about what stays unread, and one click or a POST ends these mails', async () => {
    const email = 'unread@example.com'
    const page = await s.visit()
    await signUp(page, email)
    await chooseLevel(page)
    await page.close()
    await cancelGame(s, email, 44)
    const { text, all, one } = await waitForDigest(email)
    assert.match(text, /Partie annulée/)
    assert.ok(text.includes(`${LINK}44`))

    // A scanner follows the link. This changes nothing.
    assert.equal((await fetch(s.service.address + all)).status, 200)
    assert.equal(await readStored(email), undefined)
    const reader = await s.visit()
    await reader.goto(one)
    await reader.getByRole('button', { name: 'Confirmer' }).click()
    await reader.getByText('C’est fait.').waitFor()
    assert.equal((await readStored(email))!.types.game_cancelled!.email, false)
    assert.equal((await readStored(email))!.email_paused, false)

    // A mail program sends this request when the user presses its unsubscribe button (RFC 8058).
    const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' })
    assert.equal((await fetch(s.service.address + all, { method: 'POST', body })).status, 200)
    assert.equal((await readStored(email))!.email_paused, true)
    assert.deepEqual(s.complaints, [])
  })

  test('sees pushes and mails in the development panel, without the push service of a browser', async () => {
    const email = 'developer@example.com'
    const page = await s.visit()
    await signUp(page, email)
    await chooseLevel(page)
    await page.getByRole('button', { name: 'Abonner cette page' }).click()
    await page.getByText('Cette page est abonnée.').waitFor()
    await page.getByRole('button', { name: 'Événement suivant' }).click()
    await page.locator('.push').filter({ hasText: 'Un joueur a rejoint' }).first().waitFor()
    // A second click replaces the subscription, so each push comes once.
    await page.getByRole('button', { name: 'Abonner cette page' }).click()
    await page.getByText('Cette page est abonnée.').waitFor()
    const before = (await readPushes(s)).length
    await cancelGame(s, email, 45)
    await page.locator('.push').filter({ hasText: 'urgent' }).first().waitFor()
    await waitUntilNothingWaits()
    assert.equal((await readPushes(s)).length, before + 1)
    const letter = page.locator('.mails li', { hasText: email }).locator('details')
    await letter.locator('summary').click()
    await letter.getByRole('link', { name: `${LINK}45` }).waitFor()
    assert.deepEqual(s.complaints, [])
  })
})
