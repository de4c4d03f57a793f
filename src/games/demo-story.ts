import { FIRST_GUEST_ID } from '../accounts/users.ts'

/**
 * One event of the demo story. `actor` and `creator` are numbers of persons. The comment on `STORY` says who these
 * persons are. `players` is the number of players.
 */
type Step = { type: string; players: number; actor?: number; creator?: number; sets?: string }

const SETS = '6-4 3-6 7-5'
const HOUR_MS = 3_600_000

/**
 * The events that the development panel reports, in this order. Together, these events cause all notification
 * types. Person 0 is the signed-in user. Persons 1 to 3 are guests. If `players` is 3, for example, persons 0 to 2
 * play. In the last event, person 1 cancels a second game. The signed-in user does not cancel this game, because a user
 * who cancels a game gets no notification about the cancellation.
 */
const STORY: readonly Step[] = [
  { type: 'game_joined', players: 2, actor: 1 },
  { type: 'game_joined', players: 3, actor: 2 },
  { type: 'game_left', players: 2, actor: 2 },
  { type: 'game_joined', players: 3, actor: 2 },
  // When the fourth player joins, the service announces `game_full` in addition to `game_joined`.
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

/**
 * The first id of the demo games, far above the ids of real games. Each user has a range of a million game ids. Each
 * repetition of the story, called a round, uses two of these ids.
 */
const FIRST_GAME_ID = 1_000_000_000_000

/**
 * Returns the CloudEvent for one step of the story, as a games service would report it.
 * @param round the number of the repetition, 0 to 499 999
 */
export function demoEvent(userId: number, round: number, step: number, now: Date) {
  const { type, players, actor, creator = 0, sets } = STORY[step]!
  const personId = (index: number) => (index === 0 ? userId : FIRST_GUEST_ID + index)
  const gameId = FIRST_GAME_ID + userId * 1_000_000 + round * 2 + (creator === 0 ? 0 : 1)
  return {
    specversion: '1.0',
    id: `${gameId}/${step}`,
    source: '/dev/play',
    type,
    time: now.toISOString(),
    data: {
      game_id: gameId,
      creator_id: personId(creator),
      player_ids: Array.from({ length: players }, (_, index) => personId(index)),
      ...(actor !== undefined && { actor_id: personId(actor) }),
      starts_at: creator === 0 ? tomorrowEvening(now) : inThreeHours(now),
      ...(sets !== undefined && { score: { id: gameId, sets } }),
    },
  }
}

function tomorrowEvening(now: Date): string {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1, 17)).toISOString()
}

/**
 * Returns a full hour, 3 to 4 hours ahead. A cancellation of a game within 24 hours is urgent, so its mail does not
 * wait for the 24 hours between two ordinary mails.
 */
function inThreeHours(now: Date): string {
  return new Date((Math.ceil(now.getTime() / HOUR_MS) + 3) * HOUR_MS).toISOString()
}
