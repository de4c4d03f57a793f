import { type Harness, INTAKE_KEY } from './app.ts'
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

/** While the gate is closed, a transaction that inserts a game with this place waits at the gate. */
export const AT_GATE = 'at the gate'

/**
 * Runs `work` while the gate is closed. The intake stops waiting for a lock after a second, so a lock cannot hold up a
 * group for long enough.
 */
export async function withClosedGate<T>(h: Harness, work: () => Promise<T>): Promise<T> {
  await h.database.sql.pool.query(`
    create table if not exists gate (id integer);
    create or replace function wait_at_gate() returns trigger language plpgsql as $$
      begin
        while exists (select from gate) loop
          perform pg_sleep(0.01);
        end loop;
        return new;
      end $$;
    create or replace trigger wait_at_gate before insert on game for each row
      when (new.place = '${AT_GATE}') execute function wait_at_gate();
    insert into gate values (1)`)
  try {
    return await work()
  } finally {
    await h.database.sql`delete from gate`
  }
}

export async function waitsAtGate(h: Harness): Promise<boolean> {
  const waiting = await h.database.sql`
    select from pg_stat_activity
    where datname = current_database() and wait_event = 'PgSleep' and query ~ 'insert into game'`
  return waiting.length > 0
}

/**
 * Sends events while a group waits at the gate. So the events wait, and form the next groups in the order of `bodies`.
 * @param meanwhile runs before the gate is opened
 * @returns the answers to `bodies`
 */
export async function sendDuringGroup(
  h: Harness,
  bodies: unknown[],
  meanwhile: () => Promise<unknown> = async () => {},
  to: Pick<Harness, 'call'> = h,
) {
  const { running, waiting } = await withClosedGate(h, async () => {
    const running = sendEach(to, [update(newGameId(), AT_GATE)])
    await waitUntil(() => waitsAtGate(h))
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
