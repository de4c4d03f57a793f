import { INTAKE_KEY } from './programs.ts'
import { post } from './requests.ts'

// New games get ids above this number, because the ids of all seeded games are lower.
let lastGameId = 1_000_000_000
let lastEventNumber = 0

/**
 * Makes a `game_joined` event for a new game. The event has three recipients: two players, and the creator of the game,
 * who does not play.
 * @param users the number of seeded users
 */
export function makeEvent(users: number): Record<string, unknown> {
  lastGameId += 1
  lastEventNumber += 1
  const first = Math.floor(Math.random() * users)
  const [creator, actor, ...others] = [0, 1, 2, 3].map(step => 1 + ((first + step * 7) % users))
  return {
    specversion: '1.0',
    id: `bench-${process.pid}-${lastEventNumber}`,
    source: '/bench',
    type: 'game_joined',
    time: new Date().toISOString(),
    data: {
      game_id: lastGameId,
      creator_id: creator,
      player_ids: [actor, ...others],
      actor_id: actor,
      starts_at: '2030-01-19T17:00:00.000Z',
    },
  }
}

export function reportRequest(event: unknown): string {
  return post('/internal/v1/events', event, INTAKE_KEY)
}

export function batchRequest(batch: unknown[]): string {
  const type = { 'Content-Type': 'application/cloudevents-batch+json' }
  return post('/internal/v1/events', batch, INTAKE_KEY, type)
}
