import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { chooseLevel, notify, signUp, skip, stage } from '../support/browser.ts'

const s = stage()

const FAULTS: Record<string, string> = {
  'whose localStorage is full': `
    Storage.prototype.setItem = () => { throw new DOMException('The quota has been exceeded.', 'QuotaExceededError') }`,
  'whose storages throw on every access': `
    for (const name of ['localStorage', 'sessionStorage'])
      Object.defineProperty(window, name, { get() { throw new DOMException('Denied.', 'SecurityError') } })`,
  'whose storages have no methods': `
    for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, { value: {} })`,
  'that refuses every lock': `
    LockManager.prototype.request = () => Promise.reject(new DOMException('Denied.', 'SecurityError'))`,
  'that can open no BroadcastChannel': `
    window.BroadcastChannel = class { constructor() { throw new DOMException('Denied.', 'SecurityError') } }`,
  'that has neither locks, channels, popovers nor style sheets in scripts': `
    delete Navigator.prototype.locks
    delete window.BroadcastChannel
    delete HTMLElement.prototype.showPopover
    window.CSSStyleSheet = undefined`,
}

suite('a browser with interfaces that throw or are missing', { skip, timeout: 180_000 }, () => {
  for (const [index, [fault, script]] of Object.entries(FAULTS).entries()) {
    test(`in a browser ${fault}, a user signs up and receives a live notification`, async () => {
      const email = `fault${index}@example.com`
      // The page cannot store the key of the mailbox, so it takes the key from the address.
      const page = await s.visit({ hasMailboxKey: false })
      await page.addInitScript(script)
      const key = new URL(s.service.listening.mailbox!).searchParams.get('key')
      await signUp(page, email, 'Marie', `/#mailbox=${key}`)
      await chooseLevel(page)
      await page.getByRole('button', { name: 'Notifications, aucune non lue' }).waitFor()
      await notify(s, email)
      await page.getByRole('button', { name: 'Notifications, 1 non lue' }).click()
      await page.locator('courtside-inbox li').getByText('(2/4)').waitFor()
      await page.getByRole('button', { name: 'Se déconnecter' }).click()
      await page.getByText('Votre session est terminée.').waitFor()
      // The page's policy refuses a <style> element, which replaces the style sheet in an old browser.
      assert.deepEqual(
        s.complaints.filter(text => !text.includes('inline style')),
        [],
      )
      s.complaints.length = 0
      await page.context().close()
    })
  }
})
