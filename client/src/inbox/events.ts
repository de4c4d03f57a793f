import type { Notification } from '../api.ts'

/** The events of the element and their types, for `addEventListener`. */
export type CourtsideInboxEventMap = {
  'notification-open': CustomEvent<Notification>
  'sign-in-request': CustomEvent<null>
}

type Listener<K extends keyof CourtsideInboxEventMap> = (event: CourtsideInboxEventMap[K]) => unknown

type TypedListeners = {
  addEventListener<K extends keyof CourtsideInboxEventMap>(
    type: K,
    listener: Listener<K>,
    options?: boolean | AddEventListenerOptions,
  ): void
  removeEventListener<K extends keyof CourtsideInboxEventMap>(
    type: K,
    listener: Listener<K>,
    options?: boolean | EventListenerOptions,
  ): void
}

// A server that renders pages has no HTMLElement. An empty base class lets such a server import this file.
export const InboxBase = (globalThis.HTMLElement ?? class {}) as unknown as new () => TypedListeners & HTMLElement
