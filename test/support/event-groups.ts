import { type Harness, INTAKE_KEY } from './app.ts'
import { waitsForLock } from './database.ts'
import { cloudEvent, EVENTS, newGameId } from './games.ts'
import { METRICS_TOKEN, parseSamples } from './metrics.ts'
import { waitUntil } from './wait-until.ts'

/** A process with METRICS_TOKEN. */
type Process = {
  call(method: string, path: string, options: { token: string; body?: unknown }): Promise<{ text: string }>
}

/** Sends events one by one, each in its own request, without waiting for the answers. */
export function sendEach(to: Pick<Harness, 'call'>, bodies: unknown[]) {
  return bodies.map(body => to.call('POST', EVENTS, { token: INTAKE_KEY, body }))
}

/**
 * All events have this time. Of events with the same time, the event that arrives last decides the state of the game.
 */
export const AT = { time: '2026-11-28T09:00:00Z' }

/** Returns an event about a game without recipients. */
export function update(gameId: number, place: string) {
  return cloudEvent('game_updated', { game_id: gameId, place, creator_id: 1, player_ids: [] }, AT)
}

/**
 * Sends events while a group waits for a lock. So the events wait, and form the next groups in the order of `bodies`.
 * @param meanwhile runs before the lock is released
 * @returns the answers to `bodies`
 */
export async function sendDuringGroup(
  h: Harness,
  bodies: unknown[],
  meanwhile: () => Promise<unknown> = async () => {},
  to: Pick<Harness, 'call'> = h,
) {
  const locked = newGameId()
  await Promise.all(sendEach(h, [update(locked, 'Court 1')]))
  const { running, waiting } = await h.database.sql.begin(async tx => {
    await tx`select from game where id = ${locked} for update`
    const running = sendEach(to, [update(locked, 'Court 2')])
    await waitUntil(() => waitsForLock(h.database.sql, 'insert into game'))
    const waiting = sendEach(to, bodies)
    await waitUntil(async () => (await countWaiting(to)) === bodies.length)
    await meanwhile()
    return { running, waiting }
  })
  const answers = await Promise.all([...running, ...waiting])
  return answers.slice(1)
}

/** Returns the number of events that wait for their group. */
export async function countWaiting(process: Process): Promise<number | undefined> {
  const { text } = await process.call('GET', '/metrics', { token: METRICS_TOKEN })
  return parseSamples(text).get('courtside_pool_connections{pool="intake",state="waiting"}')
}

/** Makes every transaction that inserts a game with this place fail with an SQLSTATE. */
export async function failAtPlace(h: Harness, place: string, sqlState: string): Promise<void> {
  await h.database.sql.pool.query(`
    create sequence attempt_${sqlState.toLowerCase()};
    create function fail_${sqlState.toLowerCase()}() returns trigger language plpgsql as $$
      begin
        perform nextval('attempt_${sqlState.toLowerCase()}');
        raise sqlstate '${sqlState}';
      end $$;
    create trigger fail_${sqlState.toLowerCase()} before insert on game for each row
      when (new.place = '${place}') execute function fail_${sqlState.toLowerCase()}()`)
}

/** Returns how often a transaction has failed with an SQLSTATE. See `failAtPlace`. */
export async function countFailures(h: Harness, sqlState: string): Promise<number> {
  const name = `attempt_${sqlState.toLowerCase()}`
  const [row] = await h.database.sql<{ last: number | null }>`
    select pg_sequence_last_value(${name}::regclass) as last`
  return row!.last ?? 0
}
