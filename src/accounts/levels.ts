import type { Static } from 'typebox'
import type { Query, Sql } from '../db/sql.ts'
import type { NewLevel } from './import-levels.ts'
import type { GameLevel } from './schema.ts'

/** Returns all levels in display order. */
export async function list(sql: Query): Promise<Static<typeof GameLevel>[]> {
  return sql`select id, slug, name, description, position from game_level order by position, id`
}

/**
 * Replaces all levels in one transaction. The slug identifies a level, so a user keeps a level if the new levels
 * include the slug of this level.
 * @param force whether to remove levels that users have chosen. The users of a removed level have no level afterwards
 * @returns the number of new levels, and the number of removed levels
 * @throws Error if `force` is false and a level that a user has chosen would be removed. In this case nothing is
 *   changed
 */
export async function replace(
  sql: Sql,
  scale: NewLevel[],
  force: boolean,
): Promise<{ levels: number; removed: number }> {
  return sql.begin(async tx => {
    const slugs = scale.map(level => level.slug)
    const chosen = await tx<{ slug: string }>`
      select slug from game_level
      where slug <> all(${slugs}::text[]) and exists (select from app_user where game_level_id = game_level.id)
      order by position`
    if (chosen.length > 0 && !force) {
      const names = chosen.map(level => level.slug).join(', ')
      throw new Error(`Users have chosen ${names}. Nothing was changed. With --force, these users lose their level.`)
    }
    const removed = await tx`delete from game_level where slug <> all(${slugs}::text[]) returning id`
    await tx`
      insert into game_level (slug, name, description, position)
      select slug, name, description, position
      from jsonb_to_recordset(${JSON.stringify(scale)}::jsonb)
        as level (slug text, name text, description text, position integer)
      on conflict on constraint game_level_slug_key do update
        set name = excluded.name, description = excluded.description, position = excluded.position`
    return { levels: scale.length, removed: removed.length }
  })
}
