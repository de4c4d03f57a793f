// courtside-client/server: reports facts. For the games service alone: the key opens the intake to whoever holds it.
export type { EventResult, RejectedEvent, Score } from './api.ts'
export { CourtsideError, type ErrorCode } from './error.ts'
export type { Fact, ReportedFact } from './fact.ts'
export { Reporter, type ReporterOptions } from './reporter.ts'
