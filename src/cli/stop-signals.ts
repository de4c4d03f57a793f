const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * A terminal sends Ctrl-C to npm and to this process, and npm then forwards the signal. So a signal that comes this
 * soon after the first one belongs to the same request to stop.
 */
const SAME_REQUEST_MS = 1_000

const PARENT_CHECK_MS = 1_000

/**
 * Returns a signal that aborts when the process must stop: at the first SIGTERM, SIGINT or SIGHUP. If npm started this
 * process, the signal also aborts when npm ends. Its reason is the name of the received signal, or SIGHUP if npm ended.
 * A later signal ends the process immediately, with exit code 1.
 */
export function watchStopSignals(): AbortSignal {
  const controller = new AbortController()
  let requestedAt: number | undefined
  const request = (reason: NodeJS.Signals) => {
    requestedAt ??= performance.now()
    controller.abort(reason)
  }
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => {
      if (requestedAt !== undefined && performance.now() - requestedAt > SAME_REQUEST_MS) process.exit(1)
      request(signal)
    })
  }
  // npm forwards SIGTERM and SIGINT, but not SIGHUP, and it can be killed. The service must not outlive npm, because
  // the operator would then not find its process. The scripts of other packages may start the service in the background
  // and end, so only the scripts of this package count.
  if (process.env.npm_package_name === 'courtside') onParentEnd(() => request('SIGHUP'))
  return controller.signal
}

/** Calls `callback` every second after the parent process has ended. This process then has another parent. */
function onParentEnd(callback: () => void): void {
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && callback(), PARENT_CHECK_MS).unref()
}
