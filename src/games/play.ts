/** An event of the story that the development page plays about whoever looks at it. */
type Scene = { type: string; players: number; actor?: number; creator?: number; sets?: string }

const SETS = '6-4 3-6 7-5'

/**
 * One of each of the ten types. Of the people `0` is the one who looks, `1` to `3` are others whom nobody knows; the first
 * `players` of them play. The last game isn't their own, so that they are told that it is cancelled.
 */
const STORY: readonly Scene[] = [
  { type: 'game_joined', players: 2, actor: 1 },
  { type: 'game_joined', players: 3, actor: 2 },
  { type: 'game_left', players: 2, actor: 2 },
  { type: 'game_joined', players: 3, actor: 2 },
  // The fourth player makes it full, which is told by itself.
  { type: 'game_joined', players: 4, actor: 3 },
  { type: 'game_reminder', players: 4 },
  { type: 'game_started', players: 4 },
  { type: 'score_submitted', players: 4, actor: 1, sets: SETS },
  { type: 'score_contested', players: 4, actor: 2, sets: SETS },
  { type: 'score_validated', players: 4, actor: 3, sets: SETS },
  { type: 'score_finalized', players: 4, sets: SETS },
  { type: 'game_cancelled', players: 2, actor: 1, creator: 1 },
]

export const STORY_LENGTH = STORY.length

/** Games that no real producer names: each user has a million rounds of their own, of two games each. */
const FIRST_GAME = 1_000_000_000_000
const FIRST_STRANGER = 9_000_000_000_000_000

/** The event of one step of the story, as a games service would report it. @param round 0 to 499 999 */
export function playedEvent(userId: number, round: number, step: number, now: Date) {
  const { type, players, actor, creator = 0, sets } = STORY[step]!
  const person = (index: number) => (index === 0 ? userId : FIRST_STRANGER + index)
  const game = FIRST_GAME + userId * 1_000_000 + round * 2 + (creator === 0 ? 0 : 1)
  return {
    specversion: '1.0',
    id: `${game}/${step}`,
    source: '/dev/play',
    type,
    time: now.toISOString(),
    data: {
      game_id: game,
      creator_id: person(creator),
      player_ids: Array.from({ length: players }, (_, index) => person(index)),
      ...(actor !== undefined && { actor_id: person(actor) }),
      starts_at: tomorrowEvening(now),
      ...(sets !== undefined && { score: { id: game, sets } }),
    },
  }
}

function tomorrowEvening(now: Date): string {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1, 17)).toISOString()
}
