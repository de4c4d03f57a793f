import type { Courtside } from '../courtside.ts'
import type { NotificationPreferences, PreferencesPatch } from '../preferences.ts'

/**
 * The preferences as the user sees them: the last answer of the service, with the changes that are under way. The
 * changes are sent one after another, so the last answer contains all of them.
 */
export class PreferenceChanges {
  readonly #client: Courtside
  readonly #language: string
  readonly #onChange: (shown: NotificationPreferences) => void
  readonly #pending: PreferencesPatch[] = []
  #saved: NotificationPreferences
  #last: Promise<unknown> = Promise.resolve()

  constructor(
    client: Courtside,
    language: string,
    saved: NotificationPreferences,
    onChange: (shown: NotificationPreferences) => void,
  ) {
    this.#client = client
    this.#language = language
    this.#saved = saved
    this.#onChange = onChange
  }

  get shown(): NotificationPreferences {
    return this.#pending.reduce<NotificationPreferences>(merge, this.#saved)
  }

  /**
   * Shows a change immediately, and then sends it. If the service refuses it, shows the old value again.
   * @throws CourtsideError
   */
  async send(patch: PreferencesPatch): Promise<void> {
    this.#pending.push(patch)
    this.#onChange(this.shown)
    const turn = this.#last.then(() => this.#client.preferences.update(patch, { language: this.#language }))
    this.#last = turn.catch(() => {})
    try {
      this.#saved = await turn
    } finally {
      this.#pending.splice(this.#pending.indexOf(patch), 1)
      this.#onChange(this.shown)
    }
  }
}

/** Merges objects at every level. A null, which takes a choice back, keeps the shown value until the answer. */
function merge<T>(value: T, patch: unknown): T {
  if (patch === null || patch === undefined) return value
  if (typeof patch !== 'object') return patch as T
  const merged = { ...value } as Record<string, unknown>
  for (const [key, part] of Object.entries(patch)) merged[key] = merge(merged[key], part)
  return merged as T
}
