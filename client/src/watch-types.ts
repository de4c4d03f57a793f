import type { Notification } from './api.ts'
import type { NotificationPage } from './endpoints.ts'

/**
 * The state of the inbox after the start of a watch or after a gap in the stream. `latest_id` is the id of the latest
 * notification, or null if the inbox is empty. Fetch the list after every sync. A lower id may be committed after a
 * higher one, so `latest_id` alone does not show whether a notification is missing.
 */
export type Sync = { unread_count: number; latest_id: number | null }

/**
 * `waiting`: the connection is lost, and the watch waits before the next attempt. `stopped`: the watch has ended and
 * does not start again, because the app stopped it or the session ended.
 */
export type WatchState = 'connecting' | 'live' | 'polling' | 'waiting' | 'stopped'

export type Watcher = {
  /** The watch calls this listener once after its start, and once after every gap in the stream. */
  onSync?: (sync: Sync) => void
  /**
   * The watch calls this listener for each new notification. A notification may come twice, so ignore a notification
   * whose id you already have. The ids may come in any order.
   */
  onNotification?: (notification: Notification) => void
  /** The watch calls this listener when the unread count may have changed, and after each call of `onSync`. */
  onUnreadCount?: (unreadCount: number) => void
  onState?: (state: WatchState) => void
  /** If this signal is aborted, the watch stops. */
  signal?: AbortSignal
}

/** The latest state and the latest `sync` that a watch has reported. */
export type Snapshot = { state?: WatchState | undefined; sync?: Sync | undefined }

/** Calls the listeners of one watcher. */
export type WatcherNotifier = {
  state(): WatchState | undefined
  setState(state: WatchState): void
  notifySync(sync: Sync): void
  notifyNotification(notification: Notification): void
  notifyUnreadCount(count: number): void
}

/** The parts of the service and of the session that a watch needs. */
export type NotificationSource = {
  canStream: boolean
  signedIn(): Promise<boolean>
  onSignedOut(listener: () => void): () => void
  openStream(signal: AbortSignal): Promise<Response>
  fetchNewest(signal: AbortSignal): Promise<NotificationPage>
  /**
   * Returns a name that identifies the service and the session. Tabs with the same name share one stream. Returns
   * undefined if the tab must open its own stream.
   */
  sharedName?(): Promise<string | undefined>
}

export type Timing = {
  /**
   * How long the watch waits for the HTTP headers of a stream. Without this limit, the watch could wait forever,
   * because some proxies hold back the headers until the answer is complete.
   */
  headMs: number
  /** How long a stream may be silent before the watch closes the stream. */
  idleMs: number
  /** The minimum duration of a stream. A shorter stream counts as a failure. */
  minStreamMs: number
  /** `look` does not replace a stream that was opened less than this time ago. */
  minLookMs: number
  /** After this number of consecutive failures, the watch stops opening streams and polls the list. */
  maxFailures: number
  pollMs: number
  /** After this number of polls, the watch tries the stream again. */
  maxPolls: number
  /**
   * The upper limit of the random wait after the first failure. The limit doubles with each further failure, up to
   * `maxMs`.
   */
  baseMs: number
  maxMs: number
}

/** One running watch, which all watchers of a client share. */
export type Watch = {
  source: NotificationSource
  timing: Timing
  notifier: WatcherNotifier
  /** This signal is aborted when the watch stops. */
  signal: AbortSignal
  /**
   * Waits until the time has passed, the page wakes up or the watch stops.
   * @param retryAfter the seconds that the service asked for. If they are given, a page that wakes up does not end the
   * wait
   */
  pause: (milliseconds: number, retryAfter?: number) => Promise<void>
}
