import { onAbort } from './abort.ts'

export type PageListeners = {
  /** The browser hides the page permanently, keeps it in the back/forward cache, or freezes it. */
  onHide: () => void
  /** The page is back after `onHide`, or it has just been loaded. */
  onShow: () => void
  /**
   * The connection may be dead, for example after a sleep of the device.
   * @param isNetworkNew whether the browser reports that the device is online again
   */
  onWake: (isNetworkNew: boolean) => void
}

const TICK_MS = 5_000
/** If two ticks are further apart, the device was asleep. No event reports such a sleep. */
const SLEEP_MS = 15_000

/** Calls the listeners until the signal is aborted. Outside of a browser, calls none of them. */
export function observePage({ onHide, onShow, onWake }: PageListeners, signal: AbortSignal): void {
  const page = globalThis.document as Document | undefined
  const isVisible = () => page?.visibilityState === 'visible'
  const listen = (target: EventTarget | undefined, name: string, listener: () => void) => {
    if (typeof target?.addEventListener !== 'function') return
    target.addEventListener(name, listener)
    onAbort(signal, () => target.removeEventListener?.(name, listener))
  }
  const reportWake = () => onWake(false)
  listen(globalThis as unknown as EventTarget, 'online', () => onWake(true))
  listen(globalThis as unknown as EventTarget, 'focus', reportWake)
  listen(globalThis as unknown as EventTarget, 'pagehide', onHide)
  listen(globalThis as unknown as EventTarget, 'pageshow', onShow)
  listen(page, 'freeze', onHide)
  listen(page, 'resume', onShow)
  listen(page, 'visibilitychange', () => isVisible() && reportWake())
  if (!page) return

  let tickedAt = Date.now()
  const ticker = setInterval(() => {
    const pausedMs = Date.now() - tickedAt
    tickedAt = Date.now()
    // Browsers slow down the timers of a hidden page, so a long time between two of its ticks does not mean a sleep.
    if (pausedMs > SLEEP_MS && isVisible()) reportWake()
  }, TICK_MS)
  onAbort(signal, () => clearInterval(ticker))
}
