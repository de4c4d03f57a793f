// A model of the budgets, waits and parts of codes, without a database. `guess-simulation.test.ts` computes the odds in
// SECURITY.md with it, and checks that the statements of the service behave like it.

const DAY = 86_400
const WEEK = 7 * DAY

/** Times are in seconds since the start of the model. */
class Bucket {
  capacity: number
  refill: number
  fullAt = 0
  since = Number.NEGATIVE_INFINITY
  guesses = 0

  constructor(capacity: number, refill: number) {
    this.capacity = capacity
    this.refill = refill
  }

  left(now: number): number {
    return this.capacity + 1e-9 - Math.max(0, this.fullAt - now) / this.refill
  }

  windowGuesses(now: number): number {
    return this.since > now - DAY ? this.guesses : 0
  }

  parts(now: number): number {
    if (this.windowGuesses(now) > 5 * this.capacity) return 3
    return this.left(now) < 1 ? 2 : 1
  }

  take(now: number): void {
    this.guesses = this.windowGuesses(now) + 1
    if (this.since <= now - DAY) this.since = now
    if (this.left(now) >= 1) this.fullAt = Math.max(this.fullAt, now) + this.refill
  }
}

/** The code of a network for an address. */
export type ModelCode = {
  network: number
  parts: number
  madeAt: number
  sentAt: number
  attempts: number
  otherAttempts: number
  mails: number
}

type Address = { bucket: Bucket; sentAt: number; codes: Map<number, ModelCode> }

export class GuessModel {
  now = 0
  installation = 100
  addresses = new Map<number, Address>()
  networks = new Map<number, Bucket>()
  onePart = 0
  within = 0
  outside = 0
  since = Number.NEGATIVE_INFINITY
  threeUntil = Number.NEGATIVE_INFINITY

  address(id: number): Address {
    const known = this.addresses.get(id)
    if (known) return known
    const address = { bucket: new Bucket(10, 9 * DAY), sentAt: Number.NEGATIVE_INFINITY, codes: new Map() }
    this.addresses.set(id, address)
    return address
  }

  network(id: number): Bucket {
    const known = this.networks.get(id)
    if (known) return known
    const bucket = new Bucket(50, DAY / 50)
    this.networks.set(id, bucket)
    return bucket
  }

  /** Returns the number of parts that are due for a stranger. */
  partsDue(address: number, network: number): number {
    const [a, n] = [this.address(address).bucket.parts(this.now), this.network(network).parts(this.now)]
    return Math.max(a, n, this.installationParts(a > 1 || n > 1))
  }

  installationParts(isOutside: boolean): number {
    const isRunning = this.since > this.now - WEEK
    if (this.threeUntil > this.now) return 3
    if (isOutside && isRunning && this.outside >= 20 * this.installation) return 3
    return isRunning && this.onePart >= this.installation ? 2 : 1
  }

  /** Returns the seconds until a request is accepted, 0 if it is accepted now. */
  wait(address: number, network: number): number {
    const { sentAt, codes } = this.address(address)
    return Math.max(0, sentAt + waitSeconds(this.mails(codes.get(network))) - this.now)
  }

  mails(code: ModelCode | undefined): number {
    return code && code.sentAt > this.now - WEEK ? code.mails : 0
  }

  /** Requests a code. The wait must be over. */
  request(address: number, network: number): ModelCode {
    const target = this.address(address)
    const old = target.codes.get(network)
    const parts = this.partsDue(address, network)
    const repeats =
      old !== undefined && old.madeAt > this.now - 600 && this.isLive(old) && old.parts === parts ? old : undefined
    const code: ModelCode = {
      network,
      parts,
      madeAt: repeats ? repeats.madeAt : this.now,
      sentAt: this.now,
      attempts: repeats && parts > 1 ? repeats.attempts : 0,
      otherAttempts: repeats && parts > 1 ? repeats.otherAttempts : 0,
      mails: this.mails(old) + 1,
    }
    target.codes.set(network, code)
    target.sentAt = this.now
    return code
  }

  isLive(code: ModelCode): boolean {
    return code.sentAt > this.now - 900 && code.attempts < 5
  }

  /** Makes a wrong guess. Returns the codes with which it was compared. */
  guess(address: number, network: number): ModelCode[] {
    const { codes } = this.address(address)
    const own = codes.get(network)
    const live = [...codes.values()].filter(code => code !== own && this.isLive(code))
    const other = live.sort((one, two) => two.sentAt - one.sentAt)[0]
    const met: ModelCode[] = []
    if (own && this.isLive(own) && this.compare(own, address, network)) met.push(own)
    if (other && other.otherAttempts < 2 && this.compare(other, address, network)) {
      other.otherAttempts += 1
      met.push(other)
    }
    // The service counts for the installation after both comparisons.
    for (const { parts } of met) this.count(this.guessesWithin.shift()!, parts)
    return met
  }

  guessesWithin: boolean[] = []

  compare(code: ModelCode, address: number, network: number): boolean {
    if (code.parts < this.partsDue(address, network)) return false
    const [a, n] = [this.address(address).bucket, this.network(network)]
    this.guessesWithin.push(a.parts(this.now) === 1 && n.parts(this.now) === 1)
    a.take(this.now)
    n.take(this.now)
    code.attempts += 1
    return true
  }

  count(isWithin: boolean, parts: number): void {
    if (this.since <= this.now - WEEK) {
      this.since = this.now
      this.onePart = 0
      this.within = 0
      this.outside = 0
    }
    if (!isWithin) {
      this.outside += 1
      return
    }
    if (parts === 1) this.onePart += 1
    this.within += 1
    if (this.within < 20 * this.installation) return
    this.within = 0
    this.threeUntil = this.now + DAY
  }
}

export function waitSeconds(mails: number): number {
  return mails >= 3 ? Math.min(14_400, 60 * 2 ** (mails - 2)) : 60
}

/**
 * Returns the chance that wrong guesses would have found a code, if they were spread well over its parts. A right part
 * costs no attempt. So with `attempts` guesses, the numbers of wrong guesses at each part add up to less than
 * `attempts`, and the chance is the number of such combinations for each code.
 */
export function chance(parts: number, attempts: number): number {
  if (attempts === 0) return 0
  let combinations = 1
  for (let part = 1; part <= parts; part += 1) combinations = (combinations * (attempts - 1 + part)) / part
  return combinations / 10_000 ** parts
}
