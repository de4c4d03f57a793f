import { fragment } from '../db/statement.ts'
import { Type } from '../http/type.ts'
import { NOTIFICATION_TYPES } from '../notification-types.ts'

const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const Instant = Type.String({ format: 'date-time', examples: ['2026-01-17T14:30:00+00:00'] })

export const Notification = Type.Object(
  {
    id: Id,
    type: Type.Enum([...NOTIFICATION_TYPES]),
    title: Type.String(),
    message: Type.String(),
    data: Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()]),
    is_read: Type.Boolean(),
    read_at: Type.Union([Instant, Type.Null()]),
    created_at: Instant,
  },
  { title: 'Notification' },
)

export const PaginationMeta = Type.Object(
  {
    current_page: Type.Integer(),
    last_page: Type.Integer(),
    per_page: Type.Integer(),
    total: Type.Integer(),
    unread_count: Type.Integer(),
  },
  { title: 'PaginationMeta' },
)

export const PageQuery = Type.Object({
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  per_page: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  before_id: Type.Optional(Id),
})

export const NotificationPath = Type.Object({ id: Id })

export const ReadAllBody = Type.Object({
  ids: Type.Optional(
    Type.Array(Id, {
      maxItems: 100,
      description: 'The notifications to mark. Without `ids`, all notifications are marked.',
    }),
  ),
})

/**
 * A `Notification` as JSON text. PostgreSQL writes this text with `row_to_json`. A request for a page of notifications
 * would take a third longer if this process parsed the rows and serialized them.
 */
export type NotificationJson = string

/** The SQL columns from which `row_to_json` creates a `Notification`. */
export const NOTIFICATION_COLUMNS = fragment`
  id, type, title, message, data, read_at is not null as is_read,
  date_trunc('second', read_at) as read_at, date_trunc('second', created_at) as created_at`
