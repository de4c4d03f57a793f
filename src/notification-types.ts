/** The types of notifications, in the order of the rows in the specification's Events table. */
export const NOTIFICATION_TYPES = [
  'game_joined',
  'game_left',
  'game_cancelled',
  'game_full',
  'game_reminder',
  'game_started',
  'score_submitted',
  'score_validated',
  'score_contested',
  'score_finalized',
] as const

export type NotificationType = (typeof NOTIFICATION_TYPES)[number]
