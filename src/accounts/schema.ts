import { timestamp } from '../http/format/timestamp.ts'
import { Type } from '../http/type.ts'
import { GameLevel } from './level-schema.ts'

export const User = Type.Object(
  {
    id: Type.Integer({ examples: [42] }),
    email: Type.String({ examples: ['marie.durand@example.com'] }),
    first_name: Type.String({ examples: ['Marie'] }),
    last_name: Type.String({ examples: ['Durand'] }),
    locale: Type.Enum(['fr', 'en']),
    game_level: Type.Union([GameLevel, Type.Null()]),
    created_at: Type.String({ format: 'date-time' }),
    updated_at: Type.String({ format: 'date-time' }),
  },
  { title: 'User' },
)

export type UserRow = {
  id: number
  email: string
  first_name: string
  last_name: string
  locale: 'fr' | 'en'
  created_at: Date
  updated_at: Date
  level_id: number | null
  slug: string
  name: string
  description: string
  position: number
}

/** A user as everybody is shown one: themselves, and operators. */
export function toUser(row: UserRow) {
  const { id, email, first_name, last_name, locale, level_id, slug, name, description, position } = row
  return {
    id,
    email,
    first_name,
    last_name,
    locale,
    game_level: level_id === null ? null : { id: level_id, slug, name, description, position },
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  }
}
