/**
 * Calls `show` with the seconds that are left, every second down to 0. It goes by the clock, since timers of a page in the
 * background are slow. @returns stop
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

/** `0:42`, `2:05`, `1:00:00`. */
export function clockTime(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const shown = parts[0] > 0 ? parts : parts.slice(1)
  return shown.map((part, index) => (index === 0 ? String(part) : String(part).padStart(2, '0'))).join(':')
}
