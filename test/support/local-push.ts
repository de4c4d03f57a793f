import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { reportEvent, type Stage } from './browser.ts'

/** A push that the local push service has received. */
export type Sent = {
  endpoint: string
  urgency: string
  message: { notification: { data: { type: string; game_id: number } } }
}

/** Returns the pushes that the local push service has received, newest first. */
export async function readPushes(s: Stage): Promise<Sent[]> {
  const key = new URL(s.service.listening.mailbox!).searchParams.get('key')
  return (await (await fetch(`${s.service.address}/dev/push/messages.json?key=${key}`)).json()) as Sent[]
}

/** Opens a page whose browser may show notifications and subscribes to the local push service. */
export async function visitWithPush(s: Stage): Promise<Page> {
  const page = await s.visit()
  await page.context().grantPermissions(['notifications'], { origin: s.service.address })
  await page.context().addInitScript(stubPushManager(new URL(s.service.listening.mailbox!).searchParams.get('key')!))
  return page
}

export async function openSettings(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Notifications, / }).click()
  await page.getByRole('button', { name: 'Réglages des notifications' }).click()
}

export async function readSubscriptions({ sql }: Stage, email: string) {
  return sql<{ id: number; session_id: string }>`
    select id, session_id from push_subscription where user_id = (select id from app_user where email = ${email})`
}

/** Switches pushes to this device on in the settings. */
export async function subscribe(page: Page): Promise<void> {
  await openSettings(page)
  await page.getByRole('switch', { name: /cet appareil/ }).click()
  await page.getByText('même si le site est fermé').waitFor()
  assert.equal(await page.getByRole('switch', { name: /cet appareil/ }).isChecked(), true)
  await page.keyboard.press('Escape')
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
export async function cancelGame(stage: Stage, email: string, game_id: number): Promise<void> {
  const [user] = await stage.sql<{ id: number }>`select id from app_user where email = ${email}`
  const creator_id = 2 ** 52
  const starts_at = new Date(Date.now() + 3 * 3_600_000).toISOString()
  const player_ids = [creator_id, user!.id]
  await reportEvent(stage, 'game_cancelled', { game_id, creator_id, player_ids, actor_id: creator_id, starts_at })
}
