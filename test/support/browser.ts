import { accessSync } from 'node:fs'
import { after, before } from 'node:test'
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type LaunchOptions,
  type Locator,
  type Page,
} from 'playwright-core'
import { INTAKE_KEY, settingsFor, VAPID_KEY } from './app.ts'
import { testDatabase } from './database.ts'
import { METRICS_TOKEN, parseSamples } from './metrics.ts'
import { type Service, startService } from './service.ts'
import { waitUntil } from './wait-until.ts'

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const program = PROGRAMS.find(isThere)

/**
 * The reason to skip the browser tests, or false. CI installs Chromium, so the browser tests fail in CI if Chromium is
 * missing.
 */
export const skip =
  program === undefined && !process.env.CI ? 'no Chromium was found (apt-get install chromium)' : false

/** The number of games about which `notify` has reported an event. */
let games = 0

export type Stage = {
  service: Service
  /** Opens a page in a new browser context. Pages share cookies and storage only within the same `page.context()`. */
  visit(options?: BrowserContextOptions & { hasMailboxKey?: boolean }): Promise<Page>
  /** Contains the warnings and errors on the consoles of all pages, and the uncaught errors of these pages. */
  complaints: string[]
  sql: Awaited<ReturnType<typeof testDatabase>>['sql']
}

type StageOptions = {
  launch?: LaunchOptions
  startMail?: () => Promise<string>
  env?: Record<string, string>
}

/**
 * Registers two hooks. Before the tests, the first hook creates a database, and starts a service and Chromium. After
 * the tests, the second hook stops Chromium and the service, and drops the database. Call this function at the top of a
 * test file.
 * @param launch the options of Chromium
 * @param startMail starts a mail server and returns its URL; by default the service has a development mailbox
 * @param env further settings of the service
 */
export function stage({ launch, startMail, env }: StageOptions = {}): Stage {
  const s = { complaints: [] as string[] } as Stage
  let browser: Browser
  let database: Awaited<ReturnType<typeof testDatabase>>
  before(async () => {
    if (skip) return
    if (!program) throw new Error(`CI has no Chromium at ${PROGRAMS.join(', ')}`)
    database = await testDatabase()
    s.sql = database.sql
    s.service = await startService({
      ...settingsFor(database.url, await startMail?.()),
      THROTTLE_REQUEST_OTP: '1000',
      THROTTLE_VERIFY_OTP: '1000',
      METRICS_TOKEN,
      VAPID_PRIVATE_KEY: VAPID_KEY,
      VAPID_SUBJECT: 'mailto:admin@club.example',
      ...env,
    })
    browser = await chromium.launch({ executablePath: program, ...launch })
  })
  after(async () => {
    await browser?.close()
    await s.service?.stop()
    await database?.drop()
  })
  s.visit = async ({ hasMailboxKey = true, ...options } = {}) => {
    const context = await browser.newContext({ locale: 'fr-FR', baseURL: s.service.address, ...options })
    context.on('console', message => {
      if (message.type() === 'error' || message.type() === 'warning') s.complaints.push(message.text())
    })
    context.on('weberror', error => s.complaints.push(String(error.error())))
    // A developer opens the address that the start prints. It contains the key of the mailbox, and the page keeps the
    // key.
    const { mailbox } = s.service.listening
    const key = mailbox && new URL(mailbox).searchParams.get('key')
    if (key && hasMailboxKey)
      await context.addInitScript(
        `if (location.origin === '${s.service.address}') localStorage.setItem('courtside.mailbox_key', '${key}')`,
      )
    const page = await context.newPage()
    page.setDefaultTimeout(30_000)
    return page
  }
  return s
}

/**
 * Waits until the service has this number of open streams. The service learns a moment later that a browser has closed
 * a stream, so for this moment it also counts the stream of a page that has been closed or left.
 */
export async function waitForStreams({ service }: Stage, expected: number): Promise<void> {
  await waitUntil(async () => {
    const answer = await fetch(`${service.address}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
    return parseSamples(await answer.text()).get('courtside_streams_open') === expected
  })
}

/** The scripts of a page of another site that uses the client and the inbox element of this origin. */
export type SitePage = { head?: string; body: string; script?: string }

/**
 * Lets a context answer requests for `/site/…` with pages of a site that uses the inbox element. The pages are on the
 * origin of the service, so they share its stored session. `courtside` is a client in each page.
 */
export async function serveSite(page: Page, createPage: (path: string) => SitePage): Promise<void> {
  await page.context().route('**/site/**', route => {
    const { head = '', body, script = '' } = createPage(new URL(route.request().url()).pathname)
    const html = `<!doctype html><html lang="fr"><head><meta charset="utf-8"><title>Club</title>
      <meta name="viewport" content="width=device-width, initial-scale=1">${head}</head><body>${body}
      <script type="module">
        import { Courtside, localStorageStorage } from '/client/index.js'
        import '/client/inbox.js'
        const courtside = new Courtside({ storage: localStorageStorage(), language: 'fr' })
        for (const inbox of document.querySelectorAll('courtside-inbox')) inbox.client = courtside
        ${script}
      </script></body></html>`
    return route.fulfill({ contentType: 'text/html', body: html })
  })
}

/** Fills in the form for a sign-up, sends it, and waits until the page asks for the code. */
export async function requestSignUp(page: Page, email: string, firstName = 'Marie', path = '/'): Promise<void> {
  await page.goto(path)
  await page.getByRole('button', { name: 'Créer un compte' }).click()
  await page.getByLabel('Prénom').fill(firstName)
  await page.getByLabel('Nom', { exact: true }).fill('Durand')
  await page.getByLabel('Adresse e-mail').fill(email)
  await page.getByLabel(/conditions/).check()
  await page.getByRole('button', { name: 'Recevoir un code' }).click()
  await page.getByRole('heading', { name: 'Votre code' }).waitFor()
}

/**
 * Signs up a user on the page, with the code that the development panel shows. Afterwards the page asks for the game
 * level.
 */
export async function signUp(page: Page, email: string, firstName = 'Marie', path = '/'): Promise<void> {
  await requestSignUp(page, email, firstName, path)
  await takeCode(page, email)
  await page.getByRole('heading', { name: 'Quel est votre niveau ?' }).waitFor()
}

/**
 * Clicks the latest code in the development panel. The click fills the code into the form.
 * @param mails the number of mails to the address that the panel must show before the click
 */
export async function takeCode(page: Page, email: string, mails = 1): Promise<void> {
  await (await mailedCode(page, email, mails)).click()
}

/** Waits until the panel shows `mails` mails to the address. @returns the button with the latest code */
export async function mailedCode(page: Page, email: string, mails = 1): Promise<Locator> {
  const theirs = page.locator('.mails li', { hasText: email })
  await theirs.nth(mails - 1).waitFor()
  return theirs.first().getByRole('button')
}

export async function chooseLevel(page: Page, name = 'Avancé'): Promise<void> {
  await page.getByRole('radio', { name: new RegExp(`^${name}`) }).check()
  await page.getByRole('button', { name: 'Enregistrer' }).click()
  await page.getByRole('heading', { name: /^Bonjour/ }).waitFor()
}

function isThere(path: string): boolean {
  try {
    accessSync(path)
    return true
  } catch {
    return false
  }
}

/**
 * Subtracts one hour from the stored time of an address's last mail, so the address can immediately get another mail.
 */
export async function letTimePass({ sql }: Stage, email: string): Promise<void> {
  await sql`update sign_in_address set sent_at = sent_at - interval '1 hour' where email = ${email}`
  await sql`
    update session set code_sent_at = code_sent_at - interval '1 hour'
    from app_user where app_user.id = user_id and email = ${email}`
}

/** Inserts notifications for a user directly into the database, without a NOTIFY. */
export async function storeNotifications({ sql }: Stage, email: string, count: number): Promise<void> {
  await sql`
    insert into notification (user_id, dedup_key, type, title, message, locale, created_at, updated_at)
    select id, 'stored ' || n, 'game_full', 'Partie complète', 'Numéro ' || n, 'fr', now(), now()
    from app_user, generate_series(1, ${count}::integer) as n where email = ${email}`
}

/** Reports that another player has joined a new game of the user, so the user gets a live notification. */
export async function notify(stage: Stage, email: string): Promise<void> {
  const [user] = await stage.sql<{ id: number }>`select id from app_user where email = ${email}`
  const [creator_id, actor_id] = [user!.id, 987_654]
  games += 1
  const data = {
    game_id: games,
    creator_id,
    player_ids: [creator_id, actor_id],
    actor_id,
    starts_at: '2040-01-01T18:00:00Z',
  }
  await reportEvent(stage, 'game_joined', data)
}

/** Reports an event about a game, as the games service does. */
export async function reportEvent(
  { service }: Stage,
  type: string,
  data: { game_id: number } & Record<string, unknown>,
): Promise<void> {
  const id = `${type} ${data.game_id}`
  const event = { specversion: '1.0', id, source: '/test', type, time: new Date().toISOString(), data }
  const answer = await fetch(`${service.address}/internal/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INTAKE_KEY}`, 'content-type': 'application/cloudevents+json' },
    body: JSON.stringify(event),
  })
  if (answer.status !== 202) throw new Error(`the service answered ${answer.status}: ${await answer.text()}`)
}
