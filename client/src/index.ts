export type {
  CredentialsRequest,
  GameLevel,
  Message,
  Notification,
  OtpVerification,
  PaginationMeta,
  TokenResult,
  User,
} from './api.ts'
export type { Entered, NextPart } from './code-parts.ts'
export { Courtside, type CourtsideOptions } from './courtside.ts'
export type { NotificationPage, PageQuery } from './endpoints.ts'
export { CourtsideError, type ErrorCode } from './error.ts'
export type { Notifications } from './notifications.ts'
export type { NotificationPreferences, Preferences, PreferencesPatch } from './preferences.ts'
export type { Push, PushState } from './push.ts'
export { localStorageStorage, memoryStorage, type TokenKey, type TokenStorage } from './storage.ts'
export type { Sync, Watcher, WatchState } from './watch-types.ts'
