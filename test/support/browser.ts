import { accessSync } from 'node:fs'
import { after, before } from 'node:test'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import { settingsFor } from './app.ts'
import { testDatabase } from './database.ts'
import { type Service, startService } from './service.ts'

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const program = PROGRAMS.find(isThere)

/** Why these tests are skipped; CI, which installs Chromium, fails instead. */
export const skip =
  program === undefined && !process.env.CI ? 'no Chromium was found (apt-get install chromium)' : false

export type Stage = {
  service: Service
  /** A browser of its own for somebody: nothing is shared but what `page.context()` opens further. */
  visit(options?: BrowserContextOptions): Promise<Page>
  /** What pages have complained of on their consoles. A test that wants none looks here. */
  complaints: string[]
  sql: Awaited<ReturnType<typeof testDatabase>>['sql']
}

/** A real service on a database of its own, and Debian's Chromium to look at it with; to be called at a file's top. */
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

/** Signs up on the page and takes the code from the panel that shows the mailbox. It ends where a level is chosen. */
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

/** Has the panel type the latest code that was mailed to the address. @param mails as many have been mailed in all */
export async function takeCode(page: Page, email: string, mails = 1): Promise<void> {
  await (await mailedCode(page, email, mails)).click()
}

/** The button with the latest code, once there are as many mails. */
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

/** As if the last mail to the address had been sent an hour ago, so that another may go now. */
export async function letTimePass({ sql }: Stage, email: string): Promise<void> {
  await sql`update sign_in_address set sent_at = sent_at - interval '1 hour' where email = ${email}`
}

/** Notifications of somebody's, straight into the database; nobody is told of them. */
export async function storeNotifications({ sql }: Stage, email: string, count: number): Promise<void> {
  await sql`
    insert into notification (user_id, dedup_key, type, title, message, locale, created_at, updated_at)
    select id, 'stored ' || n, 'game_full', 'Partie complète', 'Numéro ' || n, 'fr', now(), now()
    from app_user, generate_series(1, ${count}::integer) as n where email = ${email}`
}
