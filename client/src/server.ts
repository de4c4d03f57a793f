// courtside-client/server reports events. Only a games service may use it, because its key opens the intake.
export type { EventResult, RejectedEvent, Score } from './api.ts'
export { CourtsideError, type ErrorCode } from './error.ts'
export type { GameEvent, ReportedEvent } from './event.ts'
export { Reporter, type ReporterOptions } from './reporter.ts'
