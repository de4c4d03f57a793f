import type { RejectedEvent } from './api.ts'

const RFC_3339 = /^\d{4}-\d\d-\d\dt\d\d:\d\d:\d\d(\.\d+)?(z|[+-]\d\d:\d\d)$/i

/**
 * Returns whether the service refused an event only because its clock is behind: the error names only `time`, although
 * `time` is well-formed. The same event is accepted as soon as the clocks agree.
 * @param event the event as JSON
 */
export function isAheadOfService({ errors = {} }: Pick<RejectedEvent, 'errors'>, event: string): boolean {
  if (Object.keys(errors).join() !== 'time') return false
  const { time } = JSON.parse(event) as { time: unknown }
  return typeof time === 'string' && RFC_3339.test(time) && !Number.isNaN(Date.parse(time))
}
