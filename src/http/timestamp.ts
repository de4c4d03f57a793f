/** "Timestamps: `2026-01-17T14:30:00+00:00`" (contract §1), to the second. */
export function timestamp(instant: Date): string {
  return `${instant.toISOString().slice(0, 19)}+00:00`
}
