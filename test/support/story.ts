import type { Harness } from './app.ts'
import { atMinute, cloudEvent, makeFourPlayers, newGameId, readTypes, report } from './games.ts'

type Ids = readonly number[]

/**
 * Makes four players and the id of a game that the first player creates. `step` reports an event about this game: its
 * type, the players after the event, its minute, and more fields of `data`.
 */
export async function newStory(h: Harness) {
  const all = await makeFourPlayers(h)
  const game_id = newGameId()
  const step = (type: string, player_ids: Ids, minute: number, more: Record<string, unknown> = {}) =>
    report(h, cloudEvent(type, { game_id, creator_id: all[0], player_ids, ...more }, atMinute(minute)))
  return { all, game_id, step, three: all.slice(0, 3), readAll: () => readTypes(h, ...all) }
}
