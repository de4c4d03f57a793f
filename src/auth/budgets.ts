import type { Budgets } from '../code-settings.ts'
import { type Fragment, fragment } from '../db/statement.ts'
import { findLatestStart, isWindowRunning } from './clock-tolerance.ts'

const DAY_SECONDS = 86_400

/** After this time, an address gets one of its guesses back. */
const ADDRESS_REFILL_SECONDS = 9 * DAY_SECONDS

/** The fixed window in which an address or a network may have `WINDOW_FACTOR` times its budget. */
const WINDOW_SECONDS = DAY_SECONDS
const WINDOW_FACTOR = 5

/**
 * The size of one kind of bucket. A bucket consists of three columns of a row. `guesses_full_at` is the time at which
 * the bucket is full again, so no job must refill the bucket. `guesses` and `guesses_since` are the count and the start
 * of the fixed window. A statement that uses a bucket's fragments must not use another table with these columns.
 */
export type Bucket = {
  capacity: number
  /** The time after which one guess comes back. */
  refillSeconds: number
}

export type Buckets = {
  /** False if budgets are off. In this case, no guess is counted, and each code has one part. */
  isOn: boolean
  address: Bucket
  network: Bucket
  /** The number of guesses at one-part codes, by strangers within both other budgets, in 7 days. */
  installation: number
}

/** @param budgets undefined if budgets are off */
export function createBuckets(budgets: Budgets | undefined): Buckets {
  const { address, network, installation } = budgets ?? UNLIMITED
  return {
    isOn: budgets !== undefined,
    address: { capacity: address, refillSeconds: ADDRESS_REFILL_SECONDS },
    network: { capacity: network, refillSeconds: DAY_SECONDS / network },
    installation,
  }
}

// Without budgets, the statements stay the same. Their buckets are so large that no bucket is ever empty.
const UNLIMITED: Budgets = { address: 1e7, network: 1e7, installation: 1e7 }

/** Returns columns that describe a bucket at `now`: `remaining`, `window_guesses` and `window_start`. */
export function describeBucket({ capacity, refillSeconds }: Bucket, now: Date): Fragment {
  const isRunning = isBucketWindowRunning(fragment`guesses_since`, now)
  const fullAt = readFullAt(fragment`guesses_full_at`, fragment`guesses_since`, now)
  return fragment`
    -- The small number makes up for the rounding of the division.
    ${capacity}::float8 + 1e-9 - greatest(0,
      coalesce(extract(epoch from ${fullAt} - ${now}::timestamptz)::float8, 0) / ${refillSeconds}::float8) as remaining,
    case when ${isRunning} then guesses else 0 end as window_guesses,
    case when ${isRunning} then guesses_since else ${now}::timestamptz end as window_start`
}

/**
 * Returns the number of parts that codes need because of a bucket.
 * @param remaining, windowGuesses the columns of `describeBucket`
 */
export function countPartsForBucket({ capacity }: Bucket, remaining: Fragment, windowGuesses: Fragment): Fragment {
  return fragment`case when ${windowGuesses} > ${WINDOW_FACTOR * capacity} then 3 when ${remaining} < 1 then 2 else 1 end`
}

/** Returns the new value of `guesses_full_at` after `taken` guesses. @param fullAt the present value */
export function takeFrom({ refillSeconds }: Bucket, fullAt: Fragment, taken: Fragment, now: Date): Fragment {
  return fragment`greatest(${fullAt}, ${now}::timestamptz) + (${taken}) * make_interval(secs => ${refillSeconds})`
}

/**
 * Returns assignments that give guesses back to a bucket.
 * @param taken the guesses that were taken from the bucket; a wrong guess takes nothing from an empty bucket
 * @param counted the guesses that were counted in the window
 */
export function giveBack({ refillSeconds }: Bucket, taken: Fragment, counted: Fragment): Fragment {
  return fragment`
    guesses_full_at = guesses_full_at - (${taken}) * make_interval(secs => ${refillSeconds}),
    guesses = greatest(0, guesses - (${counted}))`
}

/** Returns whether the window of a bucket runs at `now`. */
export function isBucketWindowRunning(since: Fragment, now: Date): Fragment {
  return isWindowRunning(since, WINDOW_SECONDS * 1000, now)
}

/** Returns the time at which a bucket is full again. A bucket whose window begins in the future counts as full. */
export function readFullAt(fullAt: Fragment, since: Fragment, now: Date): Fragment {
  return fragment`case when coalesce(${since} <= ${findLatestStart(now)}, true) then ${fullAt} end`
}
