import { onAbort } from './abort.ts'
import { createLeaderNotifier, type Message, receive } from './tab-messages.ts'
import type { Snapshot, WatcherNotifier } from './watch-types.ts'

/** A running watch, as the leading tab uses it. */
type Run = { run(): Promise<void>; look(isNetworkNew: boolean): void }

export type Tab = {
  /** Aborted when the tab needs no notifications any more. */
  signal: AbortSignal
  notifier: WatcherNotifier
  /** Returns the state and the sync that the tab received last. */
  latest: () => Snapshot
  createRun: (notifier: WatcherNotifier, signal: AbortSignal) => Run
  /** Stores the function that checks for changes immediately. */
  setLook: (look: Run['look']) => void
}

/** How often a tab checks that the leading tab still answers. */
const ASK_MS = 30_000
/** A tab that does not answer within this time is frozen or busy, so another tab takes the lead. */
const ANSWER_MS = 5_000

/**
 * Runs one watch for all tabs with the same name. The browser's lock chooses the tab that runs the watch. A
 * BroadcastChannel carries this leading tab's events to the other tabs. Without a name, Web Locks or BroadcastChannel,
 * each tab runs a separate watch.
 * @returns a promise that resolves when `tab.signal` is aborted or the session has ended
 */
export async function runInOneTab(name: string | undefined, tab: Tab): Promise<void> {
  const channel = name === undefined ? undefined : openChannel(name)
  const isDone = channel && (await takeTurns(name!, channel, tab))
  channel?.close()
  if (!isDone) await run(tab, tab.notifier, tab.signal)
}

function run({ createRun, setLook }: Tab, notifier: WatcherNotifier, signal: AbortSignal): Promise<void> {
  const created = createRun(notifier, signal)
  setLook(isNetworkNew => created.look(isNetworkNew))
  return created.run()
}

/** Returns undefined if tabs cannot share a watch. Node has locks and channels too, but no tabs. */
function openChannel(name: string): BroadcastChannel | undefined {
  try {
    if (!globalThis.document || typeof globalThis.navigator.locks.request !== 'function') return undefined
    return new BroadcastChannel(name)
  } catch {
    // An old browser may lack Web Locks or BroadcastChannel. A page without an origin, such as a sandboxed frame, may
    // use neither.
    return undefined
  }
}

/** Leads or follows until the tab needs no notifications. @returns false if the browser refuses the lock */
async function takeTurns(name: string, channel: BroadcastChannel, tab: Tab): Promise<boolean> {
  let steal = false
  while (!tab.signal.aborted) {
    // Aborted when the tab has lost the lead, stops waiting for the lead, or needs no notifications.
    const turn = new AbortController()
    const removeListener = onAbort(tab.signal, () => turn.abort())
    const stopFollowing = follow(channel, tab, () => {
      steal = true
      turn.abort()
    })
    const options: LockOptions = steal ? { steal } : { signal: turn.signal }
    steal = false
    try {
      await navigator.locks.request(name, options, () => {
        stopFollowing()
        return lead(channel, tab, turn.signal)
      })
      return true
    } catch (error) {
      // An AbortError means that this tab stopped waiting, or that another tab has taken the lead.
      if ((error as Error).name !== 'AbortError') return false
    } finally {
      stopFollowing()
      turn.abort()
      removeListener()
    }
  }
  return true
}

async function lead(channel: BroadcastChannel, tab: Tab, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const post = (message: Message) => signal.aborted || channel.postMessage(message)
  let look = () => {}
  const { latest } = tab
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.type !== 'ask') return
    post({ type: 'answer', ...latest() })
    if (data.look) look()
  }
  const setLook: Tab['setLook'] = own => {
    look = () => own(false)
    tab.setLook(own)
  }
  await run({ ...tab, setLook }, createLeaderNotifier(tab, post), signal)
}

/**
 * Passes the leading tab's events on, and checks that the leading tab answers.
 * @param onNoAnswer called if the leading tab does not answer
 * @returns a function that ends this work
 */
function follow(channel: BroadcastChannel, tab: Tab, onNoAnswer: () => void): () => void {
  let deadline: ReturnType<typeof setTimeout> | undefined
  const ask = (look: boolean) => {
    // Further questions do not give the leading tab more time.
    deadline ??= setTimeout(onNoAnswer, ANSWER_MS)
    channel.postMessage({ type: 'ask', look } satisfies Message)
  }
  let isSynced = false
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.type === 'ask') return
    clearTimeout(deadline)
    deadline = undefined
    isSynced = receive(data, tab, isSynced)
  }
  const timer = setInterval(() => ask(false), ASK_MS)
  tab.setLook(() => ask(true))
  if (!tab.signal.aborted) ask(false)
  return () => {
    clearInterval(timer)
    clearTimeout(deadline)
  }
}
