/** The seconds to wait before the next request for a code, if an answer has no Retry-After header. */
export const DEFAULT_WAIT_SECONDS = 60

/**
 * Calls `show` every second with the remaining seconds. The last call passes 0. The remaining seconds are computed from
 * the clock, because browsers slow down the timers of a background page.
 * @returns a function that stops the countdown
 */
export function countDown(seconds, show) {
  const end = Date.now() + seconds * 1000
  const tick = () => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000))
    show(left)
    if (left === 0) clearInterval(timer)
  }
  const timer = setInterval(tick, 1000)
  tick()
  return () => clearInterval(timer)
}

/** Formats seconds as `0:42`, `2:05` or `1:00:00`. */
export function formatSeconds(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const visible = parts[0] > 0 ? parts : parts.slice(1)
  return visible.map((part, index) => (index === 0 ? String(part) : String(part).padStart(2, '0'))).join(':')
}
