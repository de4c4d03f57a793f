import type { Page, Worker } from 'playwright-core'

export type Banner = { title: string; body: string; lang: string; tag: string; data: Record<string, unknown> }

/**
 * Delivers pushes to the service worker of an origin, as the push service of a browser does. A browser reaches only its
 * vendor's push service, so Chromium takes the pushes through its debugging protocol.
 * @param page any page of the browser context; it need not show the origin
 */
export async function createPushDelivery(page: Page, origin: string) {
  const cdp = await page.context().newCDPSession(page)
  const ids = new Map<string, string>()
  cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
    for (const { scopeURL, registrationId } of registrations) ids.set(scopeURL, registrationId)
  })
  await cdp.send('ServiceWorker.enable')
  const waitForId = async (scope: string): Promise<string> => {
    while (!ids.has(scope)) await new Promise(resolve => setTimeout(resolve, 20))
    return ids.get(scope)!
  }
  return {
    /** Delivers a push and waits until the service worker shows its banner. */
    async deliver(data: string): Promise<void> {
      const worker = findWorker(page, origin)
      const count = () => worker.evaluate<number>('shownBanners')
      await worker.evaluate(COUNT_BANNERS)
      const before = await count()
      const registrationId = await waitForId(`${origin}/`)
      await cdp.send('ServiceWorker.deliverPushMessage', { origin, registrationId, data })
      while ((await count()) === before) await new Promise(resolve => setTimeout(resolve, 20))
    },
  }
}

/** Counts the calls of `showNotification` that have ended, and records the counts on the icon. */
const COUNT_BANNERS = `
  if (globalThis.shownBanners === undefined) {
    globalThis.shownBanners = 0
    globalThis.badges = []
    const show = registration.showNotification.bind(registration)
    registration.showNotification = async (...args) => {
      await show(...args)
      shownBanners += 1
    }
    navigator.setAppBadge = async count => void badges.push(count)
    navigator.clearAppBadge = async () => void badges.push(0)
  }`

export function findWorker(page: Page, origin: string): Worker {
  return page
    .context()
    .serviceWorkers()
    .find(worker => worker.url() === `${origin}/service-worker.js`)!
}

/** Returns the banners that the browser shows for an origin, newest first. */
export function readBanners(page: Page, origin: string): Promise<Banner[]> {
  return findWorker(page, origin).evaluate<Banner[]>(`registration.getNotifications().then(all =>
    all.map(({ title, body, lang, tag, data }) => ({ title, body, lang, tag, data })))`)
}

/** Returns the counts that the service worker has put on the icon of the app. */
export function readBadges(page: Page, origin: string): Promise<number[]> {
  return findWorker(page, origin).evaluate<number[]>('badges')
}
