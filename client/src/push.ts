import { wait } from './backoff.ts'
import { CourtsideError } from './error.ts'
import { fetchKey, findRegistration, subscribe, takeSubscription } from './push-subscription.ts'
import { findPushSupport } from './push-support.ts'
import type { Session } from './session.ts'

/**
 * - `unsupported`: this browser cannot receive pushes, or the service sends none.
 * - `needs-install`: on an iPhone or iPad, the user must first add the site to the home screen.
 * - `default`: the user has not been asked yet.
 * - `denied`: the user has blocked notifications. Only the settings of the browser change this.
 * - `off`: the user has allowed notifications, but this device is not subscribed.
 * - `on`: this device receives pushes.
 */
export type PushState = 'unsupported' | 'needs-install' | 'default' | 'denied' | 'off' | 'on'

/** The pushes to this device. If a request fails, the method throws CourtsideError. */
export type Push = {
  state(): Promise<PushState>
  /**
   * Subscribes this device. Call this method first in the handler of a click, because it may have to ask the user for
   * the permission. Without a click it does not ask.
   * @param serviceWorkerUrl the address of `courtside-client/service-worker`, or of a worker that imports it
   * @returns the new state, which is not `on` if the user has refused
   */
  enable(options: { serviceWorkerUrl: string | URL }): Promise<PushState>
  /** Ends the subscription of this device. This method works after the end of the session too. */
  disable(): Promise<PushState>
}

export function createPush(session: Session): Push {
  async function state(): Promise<PushState> {
    const support = findPushSupport()
    if (support === 'unsupported' || !(await fetchKey(session))) return 'unsupported'
    if (support !== 'granted') return support
    return (await (await findRegistration())?.pushManager.getSubscription()) ? 'on' : 'off'
  }

  return {
    state,
    async enable({ serviceWorkerUrl }) {
      // Browsers show the question only directly after a click, so nothing may come before it. A question without a
      // click can block the site for good.
      if (findPushSupport() === 'default' && navigator.userActivation?.isActive !== false) {
        await Notification.requestPermission()
      }
      const before = await state()
      if (before !== 'off' && before !== 'on') return before
      try {
        const registration = await navigator.serviceWorker.register(serviceWorkerUrl)
        // A browser subscribes only when the service worker runs.
        while (!registration.active && (registration.installing ?? registration.waiting)) await wait(20)
        await subscribe(session, registration)
        return 'on'
      } catch (error) {
        throw error instanceof CourtsideError ? error : session.createError('push_failed', error)
      }
    },
    async disable() {
      const subscription = await takeSubscription()
      if (subscription) {
        const body = { endpoint: subscription.endpoint }
        const informed = session.callPublic('DELETE /api/v1/push/subscriptions', { body }, { isKnown: true })
        // The service need not learn of the end, because the push service refuses pushes to an ended subscription.
        await Promise.all([subscription.unsubscribe(), informed.catch(() => {})])
      }
      return state()
    },
  }
}
