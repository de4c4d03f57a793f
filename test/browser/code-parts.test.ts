import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { letTimePass, requestSignUp, skip, stage } from '../support/browser.ts'
import { otherThan } from '../support/scenario.ts'
import { smtpServer } from '../support/smtp.ts'
import { waitUntil } from '../support/wait-until.ts'

let smtp: Awaited<ReturnType<typeof smtpServer>>

// The budgets are off while there is a development mailbox, so the service sends real mails. After one wrong guess at
// an address, its codes have two parts.
const s = stage({
  startMail: async () => {
    smtp = await smtpServer()
    return smtp.url
  },
  env: { GUESS_BUDGETS: 'address=1,installation=100000', MAIL_FROM: 'club@example.com' },
})

/** Waits for the mails to an address. @returns the parts of the code in the latest mail */
async function readParts(email: string, mails: number): Promise<string[]> {
  const find = () => smtp.mails.filter(({ to }) => to.includes(email))
  await waitUntil(() => find().length >= mails)
  const [line] = /^\d{4}\b.*$/m.exec(find().at(-1)!.parsed.text!)!
  return line.match(/\d{4}/g)!
}

/** Signs up on the page, but misses the code once, so that the next code has two parts. */
async function requestTwoParts(email: string): Promise<{ page: Page; parts: string[] }> {
  const page = await s.visit()
  await requestSignUp(page, email, 'Zoé')
  const [first] = await readParts(email, 1)
  await page.getByLabel('Code à 4 chiffres').pressSequentially(otherThan(first!))
  await page.locator('#code-error').filter({ hasText: /./ }).waitFor()
  await letTimePass(s, email)
  await page.reload()
  await page.getByRole('button', { name: 'Renvoyer un code' }).click()
  const parts = await readParts(email, 2)
  assert.equal(parts.length, 2)
  return { page, parts }
}

suite('codes of two parts on the page', { skip, timeout: 180_000 }, () => {
  after(() => smtp?.close())

  test('the page signs a user up with two parts, one after another', async () => {
    const { page, parts } = await requestTwoParts('one.by.one@example.com')
    const input = page.getByLabel('Code à 4 chiffres')
    await input.pressSequentially(parts[0]!)
    await page.getByText('Saisissez maintenant les quatre chiffres suivants.').waitFor()
    await input.pressSequentially(parts[1]!)
    await page.getByRole('heading', { name: 'Quel est votre niveau ?' }).waitFor()
  })

  test('the page signs a user up with two parts that are pasted as they appear in the mail', async () => {
    const { page, parts } = await requestTwoParts('pasted@example.com')
    await page.getByLabel('Code à 4 chiffres').fill(`${parts[0]}, puis ${parts[1]}`)
    await page.getByRole('heading', { name: 'Quel est votre niveau ?' }).waitFor()
  })
})
