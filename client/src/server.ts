// The module courtside-client/server reports events. Import the module only on a server. The intake key must
// stay secret, but every user of an app could read a key in the app's code.
export type { EventResult, RejectedEvent, Score } from './api.ts'
export { CourtsideError, type ErrorCode } from './error.ts'
export type { GameEvent, ReportedEvent } from './event.ts'
export { Reporter, type ReporterOptions } from './reporter.ts'
