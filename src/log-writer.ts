import { write, writeSync } from 'node:fs'

/** With this number of waiting characters, the writer writes immediately instead of waiting for `BATCH_MS`. */
const BATCH_CHARS = 12_288
/** How long a line waits for further lines. The batches save a system call for most lines. */
const BATCH_MS = 100
/** The maximum number of waiting characters. If a line exceeds this limit, the writer drops the line. */
const MAX_WAITING_CHARS = 4 * 2 ** 20
/** The wait before the next attempt after a failed write. */
const RETRY_MS = 100

let droppedLines = 0

/** Returns the number of log lines that this process has dropped since its start. */
export function countDroppedLines(): number {
  return droppedLines
}

/**
 * Writes log lines to a file descriptor and never waits for it. A write fails if the disk is full, or if the reader of
 * a pipe has stalled or is gone. The lines then wait in memory, and the writer repeats the write. Lines that do not fit
 * into memory are dropped and counted (decisions.md, "a log that cannot be written").
 */
export class LogWriter {
  readonly #fd: number
  readonly #onRecovered: (dropped: number) => void
  #waiting: string[] = []
  #waitingChars = 0
  /** The bytes that `fs.write` writes now, or that it could not write yet. */
  #batch: Buffer = Buffer.alloc(0)
  #isWriting = false
  #timer: NodeJS.Timeout | undefined
  /** The number of lines that were dropped since the last successful write. */
  #dropped = 0

  /** @param onRecovered called with the number of dropped lines when a write succeeds again */
  constructor(fd: number, onRecovered: (dropped: number) => void) {
    this.#fd = fd
    this.#onRecovered = onRecovered
  }

  write(line: string): void {
    if (this.#waitingChars + line.length > MAX_WAITING_CHARS) {
      droppedLines += 1
      this.#dropped += 1
      return
    }
    this.#waiting.push(line)
    this.#waitingChars += line.length
    if (this.#waitingChars >= BATCH_CHARS) this.#flush()
    else this.#flushAfter(BATCH_MS)
  }

  /**
   * Writes the waiting lines before the process exits, in one attempt. The file descriptor of a pipe does not block,
   * because Node makes it non-blocking when `process.stdout` is first used. So a stalled reader cannot delay the exit.
   */
  writeRest(): void {
    try {
      const batch = this.#isWriting ? [] : [this.#batch]
      writeSync(this.#fd, Buffer.concat([...batch, Buffer.from(this.#waiting.join(''))]))
    } catch {
      // These lines are lost, because there is no other place for them.
    }
  }

  #flushAfter(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#flush()
    }, ms).unref()
  }

  #flush(): void {
    if (this.#isWriting) return
    if (this.#batch.length === 0) {
      if (this.#waiting.length === 0) return
      this.#batch = Buffer.from(this.#waiting.join(''))
      this.#waiting = []
    }
    this.#isWriting = true
    write(this.#fd, this.#batch, (error, written) => {
      this.#isWriting = false
      if (error) return this.#flushAfter(RETRY_MS)
      this.#batch = this.#batch.subarray(written)
      if (this.#batch.length === 0) this.#finishBatch()
      this.#flush()
    })
  }

  #finishBatch(): void {
    this.#waitingChars = this.#waiting.reduce((sum, line) => sum + line.length, 0)
    if (this.#dropped === 0) return
    const dropped = this.#dropped
    this.#dropped = 0
    this.#onRecovered(dropped)
  }
}
