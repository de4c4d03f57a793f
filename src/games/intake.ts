import * as users from '../accounts/users.ts'
import type { Sql } from '../db/sql.ts'
import type { Clock } from '../notifications/dates.ts'
import * as notifications from '../notifications/notifications.ts'
import * as events from './event-log.ts'
import * as games from './games.ts'
import { compose } from './messages.ts'
import type { Fact } from './parse-event.ts'
import { type Agenda, plan, standIn } from './planning.ts'
import { apply } from './projection.ts'
import { type Telling, tellings } from './recipients.ts'

/** What became of a reported fact; for a repeat `notifications` is the first's count. */
export type Outcome = { status: 'accepted' | 'duplicate'; notifications: number } | { status: 'mismatch' }

/**
 * Takes facts in, in one transaction: records the events, locks and updates their games, notifies. Each step is one
 * statement, however many facts there are, and steps that don't need each other's outcome are sent at once. A mismatch is known
 * before anything of the fact is written, and nothing else can refuse one here, so that there is nothing for a savepoint to
 * take back.
 *
 * Locks are taken in one order by everybody: events by key, games by id, users by id. So no two requests wait for each other.
 *
 * @returns an outcome for each fact, in their order, and how many recipients were skipped as unknown
 */
export async function report(sql: Sql, facts: readonly Fact[], agenda: Agenda) {
  return sql.begin(async tx => {
    const recorded = await events.record(tx, facts, agenda.now)
    const fresh = new Set(firstOfEach(facts).filter(fact => recorded.get(fact.key)!.fresh))
    const { counts, skipped } = await happen(tx, [...fresh], agenda)
    const outcomes = facts.map((fact): Outcome => {
      const kept = recorded.get(fact.key)!
      if (kept.digest !== fact.digest) return { status: 'mismatch' }
      const notifications = counts.get(fact.key) ?? kept.notifications
      return { status: fresh.has(fact) ? 'accepted' : 'duplicate', notifications }
    })
    return { outcomes, skipped }
  })
}

/** Of the facts that share a name the first, in the order of the request. */
function firstOfEach(facts: readonly Fact[]): Fact[] {
  return [...Map.groupBy(facts, fact => fact.key).values()].map(([first]) => first!)
}

/** Lets new facts take effect, one after the other. */
async function happen(tx: Sql, facts: readonly Fact[], agenda: Agenda) {
  if (facts.length === 0) return { counts: new Map<string, number>(), skipped: 0 }
  const known = await games.lock(tx, facts, agenda.now)
  const current = new Map(known)
  const told: Telling[] = []
  for (const fact of facts) {
    const before = current.get(fact.gameId)!
    const after = apply(before, fact)
    current.set(fact.gameId, after)
    told.push(...tellings(before, after, fact))
  }
  const changed = [...current.values()].filter(game => game !== known.get(game.id))
  // In this order, so that a producer's own reminder finds what is planned.
  const [, , outcome] = await Promise.all([
    games.save(tx, changed, agenda.now),
    plan(tx, known, changed, agenda),
    tell(tx, told, agenda),
  ])
  return outcome
}

async function tell(tx: Sql, told: readonly Telling[], clock: Clock) {
  return notify(tx, await untold(tx, told, clock.now), clock)
}

/** Leaves out what was told of a game before, and keeps what is told now. */
async function untold(tx: Sql, told: readonly Telling[], now: Date): Promise<Telling[]> {
  const noticed = told.filter(telling => telling.notice !== undefined)
  if (noticed.length === 0) return [...told]
  const claimed = await games.claimNotices(tx, noticed, now)
  const fresh = told.filter(({ notice, game }) => notice === undefined || claimed.delete(`${game.id} ${notice}`))
  const reminded = fresh.filter(({ type }) => type === 'game_reminder').map(({ game }) => game)
  if (reminded.length > 0) await standIn(tx, reminded, now)
  return fresh
}

async function notify(tx: Sql, told: readonly Telling[], clock: Clock) {
  const counts = new Map<string, number>()
  const ids = new Set(told.flatMap(({ fact, userIds }) => (fact.actorId ? [...userIds, fact.actorId] : userIds)))
  if (ids.size === 0) return { counts, skipped: 0 }
  const people = await users.lockForShare(tx, [...ids])
  for (const { fact, userIds } of told) {
    const known = userIds.filter(id => people.has(id))
    counts.set(fact.key, (counts.get(fact.key) ?? 0) + known.length)
  }
  const rows = compose(told, people, clock)
  await Promise.all([notifications.deliver(tx, rows, clock.now), events.keepCounts(tx, counts)])
  const asked = told.reduce((sum, { userIds }) => sum + userIds.length, 0)
  return { counts, skipped: asked - rows.length }
}
