import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { INTAKE_KEY } from '../support/app.ts'
import { chooseLevel, letTimePass, signUp, skip, stage, takeCode } from '../support/browser.ts'
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

type Sent = {
  endpoint: string
  urgency: string
  message: { notification: { data: { type: string; game_id: number } } }
}

/** Returns the pushes that the local push service has received, newest first. */
async function readPushes(): Promise<Sent[]> {
  const key = new URL(s.service.listening.mailbox!).searchParams.get('key')
  return (await (await fetch(`${s.service.address}/dev/push/messages.json?key=${key}`)).json()) as Sent[]
}

/**
 * Returns a script that replaces the browser's own push service, which only its vendor can reach, by the local one. The
 * subscription survives the page, as a real one does.
 */
function stubPushManager(key: string): string {
  return `
    const KEY = 'test.subscription'
    const read = () => {
      const stored = JSON.parse(localStorage.getItem(KEY))
      if (!stored) return null
      const applicationServerKey = Uint8Array.from(stored.key).buffer
      return {
        endpoint: stored.json.endpoint,
        options: { applicationServerKey },
        toJSON: () => stored.json,
        unsubscribe: async () => (localStorage.removeItem(KEY), true),
      }
    }
    PushManager.prototype.getSubscription = async () => read()
    PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
      const answer = await fetch('/dev/push/subscriptions?key=${key}', { method: 'POST' })
      const text = applicationServerKey.replaceAll('-', '+').replaceAll('_', '/')
      const key = [...atob(text)].map(character => character.charCodeAt(0))
      localStorage.setItem(KEY, JSON.stringify({ key, json: await answer.json() }))
      return read()
    }`
}

/** Reports that another player has cancelled a game that starts in three hours. */
async function cancelGame(email: string, game_id: number): Promise<void> {
  const [user] = await s.sql<{ id: number }>`select id from app_user where email = ${email}`
  const creator_id = 2 ** 52
  const event = {
    specversion: '1.0',
    id: `cancel ${game_id}`,
    source: '/test',
    type: 'game_cancelled',
    time: new Date().toISOString(),
    data: {
      game_id,
      creator_id,
      player_ids: [creator_id, user!.id],
      actor_id: creator_id,
      starts_at: new Date(Date.now() + 3 * 3_600_000).toISOString(),
    },
  }
  const headers = { authorization: `Bearer ${INTAKE_KEY}`, 'content-type': 'application/cloudevents+json' }
  const url = `${s.service.address}/internal/v1/events`
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(event) })
  assert.equal(answer.status, 202, await answer.text())
}

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

/** Opens a page whose browser may show notifications and subscribes to the local push service. */
async function visitWithPush(): Promise<Page> {
  const page = await s.visit()
  await page.context().grantPermissions(['notifications'], { origin: s.service.address })
  await page.context().addInitScript(stubPushManager(new URL(s.service.listening.mailbox!).searchParams.get('key')!))
  return page
}

async function openSettings(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Notifications, / }).click()
  await page.getByRole('button', { name: 'Réglages des notifications' }).click()
}

async function readSubscriptions(email: string) {
  return s.sql<{ id: number; session_id: string }>`
    select id, session_id from push_subscription where user_id = (select id from app_user where email = ${email})`
}

async function subscribe(page: Page): Promise<void> {
  await openSettings(page)
  await page.getByRole('switch', { name: /cet appareil/ }).click()
  await page.getByText('même si le site est fermé').waitFor()
  assert.equal(await page.getByRole('switch', { name: /cet appareil/ }).isChecked(), true)
  await page.keyboard.press('Escape')
}

suite('a player whose app is closed', { skip, timeout: 240_000 }, () => {
  test('gets a banner about a cancelled game, and no push after the logout', async () => {
    const email = 'away@example.com'
    const origin = s.service.address
    const page = await visitWithPush()
    const context = page.context()
    await signUp(page, email)
    await chooseLevel(page)
    await subscribe(page)
    const other = await context.newPage()
    const { deliver } = await createPushDelivery(other, origin)
    await page.close()

    await cancelGame(email, 42)
    await waitUntil(async () => (await readPushes()).length === 1)
    const [push] = (await readPushes()) as [Sent]
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
    await cancelGame(email, 43)
    await waitUntilNothingWaits()
    assert.equal((await readPushes()).length, 1)
    assert.deepEqual(
      s.complaints.filter(text => !text.includes('401 (Unauthorized)')),
      [],
    )
    s.complaints.length = 0
    await context.close()
  })

  test('keeps the subscription when the session expires, and learns why pushes carry no text until the sign-in', async () => {
    const email = 'expired@example.com'
    const page = await visitWithPush()
    await signUp(page, email)
    await chooseLevel(page)
    await subscribe(page)
    const [before] = await readSubscriptions(email)
    await s.sql`
      update session set created_at = created_at - interval '10 days', expires_at = expires_at - interval '10 days'
      where id = ${before!.session_id}`
    // The service caches the state of a session for at most 5 s.
    await waitUntil(async () => {
      await page.reload()
      await page.getByRole('heading', { level: 1 }).waitFor()
      return page.getByLabel('Adresse e-mail').isVisible()
    }, 60_000)
    await page.getByText('n’affichent plus que leur titre').waitFor()
    await page.getByLabel('Adresse e-mail').fill(email)
    await letTimePass(s, email)
    await page.getByRole('button', { name: 'Recevoir un code' }).click()
    await takeCode(page, email, 2)
    await page.getByRole('heading', { name: /^Bonjour/ }).waitFor()
    await waitUntil(async () => (await readSubscriptions(email))[0]!.session_id !== before!.session_id)
    assert.equal((await readSubscriptions(email))[0]!.id, before!.id)
    await page.context().close()
    s.complaints.length = 0
  })

  test('switches the pushes to this device off in the settings', async () => {
    const email = 'off@example.com'
    const page = await visitWithPush()
    await signUp(page, email)
    await chooseLevel(page)
    await subscribe(page)
    assert.equal((await readSubscriptions(email)).length, 1)
    await openSettings(page)
    await page.getByRole('switch', { name: /cet appareil/ }).click()
    await page.getByText('que si le site est ouvert').waitFor()
    assert.equal((await readSubscriptions(email)).length, 0)
    assert.equal(await page.evaluate('localStorage.getItem("test.subscription")'), null)
    assert.deepEqual(s.complaints, [])
    await page.context().close()
  })

  test('sees an error at the switch if the browser cannot subscribe, and the switch goes back', async () => {
    const page = await s.visit()
    await page.context().grantPermissions(['notifications'], { origin: s.service.address })
    await page.addInitScript(
      `PushManager.prototype.subscribe = async () => { throw new DOMException('', 'AbortError') }`,
    )
    await signUp(page, 'refused@example.com')
    await chooseLevel(page)
    await openSettings(page)
    await page.getByRole('switch', { name: /cet appareil/ }).click()
    await page.getByRole('alert').filter({ hasText: 'Le navigateur refuse les notifications.' }).waitFor()
    assert.equal(await page.getByRole('switch', { name: /cet appareil/ }).isChecked(), false)
    assert.deepEqual(s.complaints, [])
    await page.context().close()
  })

  test('gets a mail about what stays unread, and one click or a POST ends these mails', async () => {
    const email = 'unread@example.com'
    const page = await s.visit()
    await signUp(page, email)
    await chooseLevel(page)
    await page.close()
    await cancelGame(email, 44)
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
    const before = (await readPushes()).length
    await cancelGame(email, 45)
    await page.locator('.push').filter({ hasText: 'urgent' }).first().waitFor()
    await waitUntilNothingWaits()
    assert.equal((await readPushes()).length, before + 1)
    const letter = page.locator('.mails li', { hasText: email }).locator('details')
    await letter.locator('summary').click()
    await letter.getByRole('link', { name: `${LINK}45` }).waitFor()
    assert.deepEqual(s.complaints, [])
  })
})
