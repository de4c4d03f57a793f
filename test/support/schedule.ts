import { beforeEach } from 'node:test'
import type { Sql } from '../../src/db/sql.ts'
import { type Fired, fireDue } from '../../src/games/schedule.ts'
import type { Harness } from './app.ts'
import { cloudEvent, happens, newGame } from './games.ts'

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** How many of these were told. */
export function told(fired: readonly Fired[]): number {
  return fired.filter(({ outcome }) => outcome === 'told').length
}

/** Games planned, moved and fired at the harness's clock. Each test begins with nothing planned. */
export function schedule(h: Harness) {
  beforeEach(async () => {
    await h.database.sql`delete from game_schedule`
  })

  /** A start some time after the clock's now, in whole seconds. */
  function startIn(ms: number): string {
    return new Date(Math.floor((h.clock.now().getTime() + ms) / 1000) * 1000).toISOString()
  }

  /** Fires whatever is due, as a worker does that looks. */
  async function fire(sql: Sql = h.database.sql): Promise<Fired[]> {
    const all: Fired[] = []
    for (;;) {
      const fired = await fireDue(sql, { now: h.clock.now(), timeZone: 'Europe/Paris' })
      if (fired.length === 0) return all
      all.push(...fired)
    }
  }

  /** Goes forward in steps, and looks at each, as a worker does. @returns how many were told */
  async function pass(ms: number, step = 30 * 60_000): Promise<number> {
    let count = 0
    for (let passed = 0; passed < ms; passed += step) {
      h.clock.advance(Math.min(step, ms - passed))
      count += told(await fire())
    }
    return count
  }

  /** An event of the clock's now about a game; the first player is its creator. */
  function event(type: string, gameId: number, startsAt: string, players: number[], more = {}) {
    const data = { game_id: gameId, creator_id: players[0], player_ids: players, starts_at: startsAt, ...more }
    return cloudEvent(type, data, { time: h.clock.now().toISOString() })
  }

  async function create(startsAt: string, players: number[], gameId = newGame()): Promise<number> {
    await happens(h, event('game_created', gameId, startsAt, players))
    return gameId
  }

  /** Reports another fact of a game, a moment later. @returns how many were notified */
  function change(gameId: number, startsAt: string, players: number[], type = 'game_updated', more = {}) {
    h.clock.advance(1)
    return happens(h, event(type, gameId, startsAt, players, more))
  }

  /** What is still to be told of a game. */
  async function planOf(gameId: number): Promise<string[]> {
    const rows = await h.database.sql<{ type: string; due_at: Date }>`
      select type from game_schedule where game_id = ${gameId} order by due_at, type`
    return rows.map(row => row.type)
  }

  return { startIn, fire, pass, event, create, change, planOf }
}
