// The module courtside-client/server reports events. Import the module only on a server, because the intake key must
// stay secret.
export type { EventResult, RejectedEvent, Score } from './api.ts'
export { CourtsideError, type ErrorCode } from './error.ts'
export type { GameEvent, ReportedEvent } from './event.ts'
export { Reporter, type ReporterOptions } from './reporter.ts'
