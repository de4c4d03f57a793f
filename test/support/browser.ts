import { accessSync } from 'node:fs'
import { after, before } from 'node:test'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import { settingsFor } from './app.ts'
import { testDatabase } from './database.ts'
import { type Service, startService } from './service.ts'

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const program = PROGRAMS.find(isThere)

/**
 * The reason to skip the browser tests, or false. CI installs Chromium, so the browser tests fail in CI if Chromium is
 * missing.
 */
export const skip =
  program === undefined && !process.env.CI ? 'no Chromium was found (apt-get install chromium)' : false

export type Stage = {
  service: Service
  /** Opens a page in a new browser context. Pages share cookies and storage only within the same `page.context()`. */
  visit(options?: BrowserContextOptions): Promise<Page>
  /** Contains the warnings and errors on the consoles of all pages, and the uncaught errors of these pages. */
  complaints: string[]
  sql: Awaited<ReturnType<typeof testDatabase>>['sql']
}

/**
 * Registers two hooks. Before the tests, the first hook creates a database, and starts a service and Chromium. After
 * the tests, the second hook stops Chromium and the service, and drops the database. Call this function at the top of a
 * test file.
 */
export function stage(): Stage {
  const s = { complaints: [] as string[] } as Stage
  let browser: Browser
  let database: Awaited<ReturnType<typeof testDatabase>>
  before(async () => {
    if (skip) return
    if (!program) throw new Error(`CI has no Chromium at ${PROGRAMS.join(', ')}`)
    database = await testDatabase()
    s.sql = database.sql
    s.service = await startService({
      ...settingsFor(database.url),
      THROTTLE_REQUEST_OTP: '1000',
      THROTTLE_VERIFY_OTP: '1000',
    })
    browser = await chromium.launch({ executablePath: program })
  })
  after(async () => {
    await browser?.close()
    await s.service?.stop()
    await database?.drop()
  })
  s.visit = async options => {
    const context = await browser.newContext({ locale: 'fr-FR', baseURL: s.service.address, ...options })
    context.on('console', message => {
      if (message.type() === 'error' || message.type() === 'warning') s.complaints.push(message.text())
    })
    context.on('weberror', error => s.complaints.push(String(error.error())))
    const page = await context.newPage()
    page.setDefaultTimeout(30_000)
    return page
  }
  return s
}

/**
 * Signs up a user on the page, with the code that the development panel shows. Afterwards the page asks for the game
 * level.
 */
export async function signUp(page: Page, email: string, firstName = 'Marie'): Promise<void> {
  await page.goto('/')
  await page.getByRole('button', { name: 'Créer un compte' }).click()
  await page.getByLabel('Prénom').fill(firstName)
  await page.getByLabel('Nom', { exact: true }).fill('Durand')
  await page.getByLabel('Adresse e-mail').fill(email)
  await page.getByLabel(/conditions/).check()
  await page.getByRole('button', { name: 'Recevoir un code' }).click()
  await page.getByRole('heading', { name: 'Votre code' }).waitFor()
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

/** Subtracts one hour from the stored time of an address's last mail, so the address can get another mail at once. */
export async function letTimePass({ sql }: Stage, email: string): Promise<void> {
  await sql`update sign_in_address set sent_at = sent_at - interval '1 hour' where email = ${email}`
}

/** Inserts notifications for a user directly into the database, without a NOTIFY. */
export async function storeNotifications({ sql }: Stage, email: string, count: number): Promise<void> {
  await sql`
    insert into notification (user_id, dedup_key, type, title, message, locale, created_at, updated_at)
    select id, 'stored ' || n, 'game_full', 'Partie complète', 'Numéro ' || n, 'fr', now(), now()
    from app_user, generate_series(1, ${count}::integer) as n where email = ${email}`
}
