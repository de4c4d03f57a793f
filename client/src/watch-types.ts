import type { Notification } from './api.ts'
import type { NotificationPage } from './endpoints.ts'

/** The state of the inbox after a gap. If `latest_id` is unknown to the app, the app must fetch the list. */
export type Sync = { unread_count: number; latest_id: number | null }

/**
 * `waiting`: the connection is lost and the next attempt comes soon. `stopped`: the watch has ended for good, by
 * `stop`, by the signal or with the session.
 */
export type WatchState = 'connecting' | 'live' | 'polling' | 'waiting' | 'stopped'

export type Watcher = {
  /** Called first and after every gap. */
  onSync?: (sync: Sync) => void
  /** Called for each new notification. It may repeat one, and ids need not rise, so compare ids. */
  onNotification?: (notification: Notification) => void
  /** Called when the count may have changed, and with each `onSync`. */
  onUnreadCount?: (unreadCount: number) => void
  onState?: (state: WatchState) => void
  /** Stops the watch when it is aborted, like the function that `watch` returns. */
  signal?: AbortSignal
}

/** Calls the listeners of one watcher. */
export type WatcherNotifier = {
  state(): WatchState | undefined
  setState(state: WatchState): void
  notifySync(sync: Sync): void
  notifyNotification(notification: Notification): void
  notifyUnreadCount(count: number): void
}

/** What a watch needs from the service and the session. */
export type NotificationSource = {
  canStream: boolean
  signedIn(): Promise<boolean>
  onSignedOut(listener: () => void): () => void
  openStream(signal: AbortSignal): Promise<Response>
  fetchNewest(): Promise<NotificationPage>
}

export type Timing = {
  /** How long to wait for the head of the answer. A proxy may hold it back until the answer is complete. */
  headMs: number
  /** How long a stream may be silent before it counts as dead. */
  idleMs: number
  /** A stream that ends sooner counts as a failure. */
  minStreamMs: number
  /** After so many failures in a row the watch polls. */
  maxFailures: number
  pollMs: number
  /** After so many polls the watch tries the stream again. */
  maxPolls: number
  /** The backoff between attempts. */
  baseMs: number
  maxMs: number
}

/** One running watch. */
export type Watch = {
  source: NotificationSource
  timing: Timing
  notifier: WatcherNotifier
  /** Aborted when the watch stops. */
  signal: AbortSignal
  /** Waits. It returns early if the network comes back or the watch stops. */
  pause: (milliseconds: number) => Promise<void>
}
