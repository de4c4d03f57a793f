import { wait } from './backoff.ts'
import type { Input } from './endpoints.ts'
import type { CourtsideError } from './error.ts'
import { withLock } from './lock.ts'
import { findPushSupport } from './push-support.ts'
import type { Session } from './session.ts'

/**
 * The name of a lock, and of the item of localStorage that contains the scope of our service worker while the user
 * wants pushes on this device. Without the item, the client touches no subscription, because the app may use another
 * push service too.
 */
const NAME = 'courtside.push'

const DROP_MS = 2_000

/** Returns the service's public key, or undefined if the service sends no pushes. @throws CourtsideError */
export async function fetchKey(session: Session): Promise<string | undefined> {
  const answer = await session.callPublic('GET /api/v1/push/key', {}).catch((error: CourtsideError) => {
    if (error.status !== 404) throw error
  })
  return answer?.body.data.public_key
}

/**
 * Subscribes this browser with the key of the service, and confirms the subscription to the service. A subscription
 * with this key stays as it is. Only one tab at a time does this.
 * @param added the service worker if the user has just switched pushes on. Otherwise, nothing happens if the user wants
 * no pushes on this device
 * @throws CourtsideError if a request fails; an error of the browser if the browser cannot subscribe
 */
export function subscribe(session: Session, added?: ServiceWorkerRegistration): Promise<void> {
  return withLock(NAME, async () => {
    const registration = added ?? (await findRegistration())
    const key = registration && (await fetchKey(session))
    if (!key) return
    const { pushManager } = registration
    let subscription = await pushManager.getSubscription()
    if (!subscription || readKey(subscription) !== key) {
      // A browser refuses to subscribe with a second key.
      await subscription?.unsubscribe()
      subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
    }
    const body = {
      ...subscription.toJSON(),
      public_key: readKey(subscription),
      time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    }
    await session.call('PUT /api/v1/push/subscriptions', { body } as Input<'PUT /api/v1/push/subscriptions'>)
    if (added) localStorage.setItem(NAME, added.scope)
  })
}

/**
 * Confirms the subscription to the service. If the service has a new key, or the browser has lost the subscription,
 * subscribes again. Does nothing if the user is signed out or wants no pushes on this device. This function never
 * throws, because the next start of the client tries again.
 */
export async function confirmSubscription(session: Session): Promise<void> {
  const isWanted = findPushSupport() === 'granted' && (await session.token()) !== null
  if (isWanted) await subscribe(session).catch(() => {})
}

/**
 * Stores immediately that the user wants no pushes on this device. If another tab is replacing the subscription, waits
 * for this tab.
 * @returns the subscription that the caller must end
 */
export async function takeSubscription(): Promise<PushSubscription | null | undefined> {
  const registration = await findRegistration()
  if (!registration) return
  localStorage.removeItem(NAME)
  return withLock(NAME, () => registration.pushManager.getSubscription())
}

/** Ends the subscription of this browser, without a request to the service. Waits for at most 2 s. */
export async function dropSubscription(): Promise<void> {
  if (findPushSupport() === 'unsupported') return
  const dropped = takeSubscription().then(subscription => subscription?.unsubscribe())
  await Promise.race([dropped.catch(() => {}), wait(DROP_MS)])
}

/** Returns our service worker, or undefined if the user wants no pushes on this device. */
export async function findRegistration(): Promise<ServiceWorkerRegistration | undefined> {
  try {
    const scope = localStorage.getItem(NAME)!
    const registration = await navigator.serviceWorker.getRegistration(scope)
    // If ours is gone, the browser returns a service worker with a wider scope.
    if (registration!.scope === scope) return registration
  } catch {
    // There is no localStorage, no such item or no service worker.
  }
  return undefined
}

/** Returns the key with which the browser has subscribed, in base64url, or undefined if the browser does not say it. */
function readKey({ options }: PushSubscription): string | undefined {
  const key = options.applicationServerKey
  const text = key && btoa(String.fromCharCode(...new Uint8Array(key)))
  return text?.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
