import type { Harness } from './app.ts'
import { atMinute, cloudEvent, makeFourPlayers, newGameId, readTypes, report } from './games.ts'

type Ids = readonly number[]

/**
 * Creates four players and the id of a game. The first player is the creator of the game. The returned function `step`
 * reports an event about this game. Its parameter `player_ids` lists the players after the event, and its parameter
 * `more` contains additional members of `data`.
 */
export async function newStory(h: Harness) {
  const all = await makeFourPlayers(h)
  const game_id = newGameId()
  const step = (type: string, player_ids: Ids, minute: number, more: Record<string, unknown> = {}) =>
    report(h, cloudEvent(type, { game_id, creator_id: all[0], player_ids, ...more }, atMinute(minute)))
  return { all, game_id, step, three: all.slice(0, 3), readAll: () => readTypes(h, ...all) }
}
