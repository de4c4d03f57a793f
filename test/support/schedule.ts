import { beforeEach } from 'node:test'
import type { Sql } from '../../src/db/sql.ts'
import { type Fired, fireDue } from '../../src/games/schedule.ts'
import type { Harness } from './app.ts'
import { cloudEvent, newGameId, report } from './games.ts'

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** The greatest number of batches that a test may fire. More batches indicate an endless loop. */
const MAX_BATCHES = 1_000

export function countAnnounced(fired: readonly Fired[]): number {
  return fired.filter(({ outcome }) => outcome === 'told').length
}

/** The type of an event, and additional members of its `data`. */
type Change = { type?: string; [field: string]: unknown }

/**
 * Returns functions that create and change games and fire their due times. The functions use the clock of the harness.
 * Each test begins with an empty schedule.
 */
export function schedule(h: Harness) {
  beforeEach(async () => {
    await h.database.sql`delete from game_schedule`
  })

  /** Returns the time of the test clock plus `ms` milliseconds, rounded down to whole seconds, as an ISO string. */
  function startIn(ms: number): string {
    return new Date(Math.floor((h.clock.now().getTime() + ms) / 1000) * 1000).toISOString()
  }

  /** Fires all due times that have passed, batch by batch, as a worker does. */
  async function fireAllDue(sql: Sql = h.database.sql): Promise<Fired[]> {
    const all: Fired[] = []
    for (let batches = 0; batches < MAX_BATCHES; batches += 1) {
      const fired = await fireDue(sql, { now: h.clock.now(), timeZone: 'Europe/Paris' }, new Set())
      if (fired.length === 0) return all
      all.push(...fired)
    }
    throw new Error(`the schedule still has due times after ${MAX_BATCHES} batches`)
  }

  /**
   * Advances the clock by `ms` milliseconds in steps, and fires due times after each step.
   * @returns the number of announced due times
   */
  async function advanceAndFire(ms: number, stepMs = 30 * 60_000): Promise<number> {
    let count = 0
    for (let passed = 0; passed < ms; passed += stepMs) {
      h.clock.advance(Math.min(stepMs, ms - passed))
      count += countAnnounced(await fireAllDue())
    }
    return count
  }

  /** Returns a game event whose `time` is the time of the test clock. The first player is the creator of the game. */
  function gameEvent(gameId: number, startsAt: string, players: number[], change: Change = {}) {
    const { type = 'game_updated', ...more } = change
    const data = { game_id: gameId, creator_id: players[0], player_ids: players, starts_at: startsAt, ...more }
    return cloudEvent(type, data, { time: h.clock.now().toISOString() })
  }

  async function createGame(startsAt: string, players: number[], gameId = newGameId()): Promise<number> {
    await report(h, gameEvent(gameId, startsAt, players, { type: 'game_created' }))
    return gameId
  }

  /** Advances the clock by 1 ms and reports an event. @returns the number of notifications that the event caused */
  function changeGame(gameId: number, startsAt: string, players: number[], change: Change = {}) {
    h.clock.advance(1)
    return report(h, gameEvent(gameId, startsAt, players, change))
  }

  /** Returns the notification types in the schedule of a game, in the order of their due times. */
  async function readSchedule(gameId: number): Promise<string[]> {
    const rows = await h.database.sql<{ type: string; due_at: Date }>`
      select type from game_schedule where game_id = ${gameId} order by due_at, type`
    return rows.map(row => row.type)
  }

  return { startIn, fireAllDue, advanceAndFire, gameEvent, createGame, changeGame, readSchedule }
}
