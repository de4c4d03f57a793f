import { onAbort } from './abort.ts'
import { observePage } from './page-events.ts'
import { runInOneTab } from './tabs.ts'
import { TIMING, WatchRun } from './watch.ts'
import type { NotificationSource, Snapshot, Timing, Watcher, WatcherNotifier } from './watch-types.ts'
import { createNotifier } from './watcher-notifier.ts'

/** Runs one watch for all watchers of a client. The watch runs while there is at least one watcher. */
export class SharedWatch {
  readonly #source: NotificationSource
  readonly #timing: Timing
  /** The watchers, by the function that stops them. */
  readonly #notifiers = new Map<() => void, WatcherNotifier>()
  #latest: Snapshot = {}
  /** Aborted when the last watcher stops or the session ends. */
  #started: AbortController | undefined
  /** Also aborted when the page is hidden permanently, so that a hidden page holds neither a stream nor a lock. */
  #running: AbortController | undefined
  #look: (isNetworkNew: boolean) => void = () => {}

  constructor(source: NotificationSource, timing: Timing = TIMING) {
    this.#source = source
    this.#timing = timing
  }

  /** Adds a watcher, as described at `Notifications.watch`. @returns a function that removes the watcher */
  watch(watcher: Watcher): () => void {
    const stopping = new AbortController()
    const notifier = createNotifier(watcher, stopping.signal)
    let removeListener = () => {}
    const stop = () => {
      if (stopping.signal.aborted) return
      notifier.setState('stopped')
      stopping.abort()
      removeListener()
      this.#notifiers.delete(stop)
      // A framework may remove and add an inbox element in one turn. The watch continues in this case.
      queueMicrotask(() => this.#notifiers.size === 0 && this.#end())
    }
    this.#notifiers.set(stop, notifier)
    removeListener = onAbort(watcher.signal, stop)
    if (stopping.signal.aborted) return stop
    if (this.#started) queueMicrotask(() => this.#replay(notifier))
    else this.#start()
    return stop
  }

  /** Reports the latest state and the latest sync to a watcher that joins a running watch. */
  #replay(notifier: WatcherNotifier): void {
    const { state, sync } = this.#latest
    if (state) notifier.setState(state)
    if (sync) notifier.notifySync({ ...sync })
  }

  #start(): void {
    const started = new AbortController()
    this.#started = started
    onAbort(
      started.signal,
      this.#source.onSignedOut(() => this.#stopAll()),
    )
    const onHide = () => {
      if (!this.#running) return
      this.#pause()
      this.#notifyAll.setState('waiting')
    }
    const onShow = () => (this.#running ? this.#look(false) : this.#run())
    observePage({ onHide, onShow, onWake: isNetworkNew => this.#look(isNetworkNew) }, started.signal)
    this.#run()
  }

  #run(): void {
    const running = new AbortController()
    const { signal } = running
    this.#running = running
    const stopUnlessPaused = () => {
      if (!signal.aborted) this.#stopAll()
    }
    this.#receive(signal).then(stopUnlessPaused, stopUnlessPaused)
  }

  async #receive(signal: AbortSignal): Promise<void> {
    const [source, timing] = [this.#source, this.#timing]
    await runInOneTab(await source.sharedName?.(), {
      signal,
      notifier: this.#notifyAll,
      latest: () => this.#latest,
      createRun: (notifier, signal) => new WatchRun({ source, timing, notifier, signal }),
      setLook: look => {
        if (!signal.aborted) this.#look = look
      },
    })
  }

  #pause(): void {
    this.#running?.abort()
    this.#running = undefined
    this.#look = () => {}
  }

  #end(): void {
    this.#pause()
    this.#started?.abort()
    this.#started = undefined
    this.#latest = {}
  }

  #stopAll(): void {
    this.#end()
    for (const stop of [...this.#notifiers.keys()]) stop()
  }

  /** Keeps the latest state of the inbox, and calls all watchers. */
  readonly #notifyAll: WatcherNotifier = {
    state: () => this.#latest.state,
    setState: state => {
      this.#latest.state = state
      this.#forEach(notifier => notifier.setState(state))
    },
    notifySync: sync => {
      this.#latest.sync = { ...sync }
      this.#forEach(notifier => notifier.notifySync(sync))
    },
    notifyNotification: notification => {
      const { sync } = this.#latest
      if (sync) sync.latest_id = Math.max(sync.latest_id ?? 0, notification.id)
      this.#forEach(notifier => notifier.notifyNotification(notification))
    },
    notifyUnreadCount: count => {
      if (this.#latest.sync) this.#latest.sync.unread_count = count
      this.#forEach(notifier => notifier.notifyUnreadCount(count))
    },
  }

  #forEach(notify: (notifier: WatcherNotifier) => void): void {
    for (const notifier of [...this.#notifiers.values()]) notify(notifier)
  }
}
