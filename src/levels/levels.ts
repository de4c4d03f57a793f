import type { Static } from 'typebox'
import type { Sql } from '../db/sql.ts'
import type { GameLevel } from './schema.ts'

/** All levels, in the order in which they are shown. */
export async function list(sql: Sql): Promise<Static<typeof GameLevel>[]> {
  return sql`select id, slug, name, description, position from game_level order by position, id`
}
