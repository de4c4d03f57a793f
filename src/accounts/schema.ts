import type { Static } from 'typebox'
import { timestamp } from '../http/format/timestamp.ts'
import { Type } from '../http/type.ts'

export const GameLevel = Type.Object(
  {
    id: Type.Integer({ examples: [4] }),
    slug: Type.String({ examples: ['intermediaire'] }),
    name: Type.String({ examples: ['Intermédiaire'] }),
    description: Type.String({ examples: ['Vous maîtrisez les coups de base et commencez à jouer avec les vitres.'] }),
    position: Type.Integer({ description: 'The place of the level in the list of levels.', examples: [4] }),
  },
  { title: 'GameLevel' },
)

export const LevelAssessment = Type.Object(
  { game_level_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, examples: [4] }) },
  { title: 'LevelAssessment' },
)

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

type Level = Static<typeof GameLevel>

/**
 * A row from `users.find`: the columns of the user and of the user's level. If the user has no level, the level's
 * columns are null.
 */
export type UserRow = Omit<Static<typeof User>, 'game_level' | 'created_at' | 'updated_at'> & {
  created_at: Date
  updated_at: Date
  level_id: number | null
} & Omit<Level, 'id'>

/**
 * Returns a user as JSON, for the API and for operators. The columns of the level become `game_level`. All other
 * columns keep their names.
 */
export function toUser(row: UserRow): Static<typeof User> {
  const { level_id, slug, name, description, position, created_at, updated_at, ...profile } = row
  return {
    ...profile,
    game_level: level_id === null ? null : { id: level_id, slug, name, description, position },
    created_at: timestamp(created_at),
    updated_at: timestamp(updated_at),
  }
}
