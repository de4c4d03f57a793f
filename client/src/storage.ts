type MaybePromise<T> = T | Promise<T>

/**
 * The name of a stored token. `token` is the token of the current session. `last_token` is the last token of the
 * previous session. The client keeps `last_token` after a sign-out and sends it at the next sign-in. The service then
 * treats this client as a known client. So a stranger who requests or guesses codes for the address cannot delay the
 * user.
 */
export type TokenKey = 'token' | 'last_token'

/** Stores the tokens. An app can implement this type with AsyncStorage or a keychain. */
export type TokenStorage = {
  get(key: TokenKey): MaybePromise<string | null>
  /** Stores a value. If `value` is `null`, removes the stored value. */
  set(key: TokenKey, value: string | null): MaybePromise<void>
  /**
   * Calls the listener when code outside this client, such as another tab, may have changed a value.
   * @returns a function that removes the listener
   */
  onChange?(listener: () => void): () => void
}

/** Creates a storage that keeps the tokens in memory. The tokens are lost when the page or the process ends. */
export function memoryStorage(): TokenStorage {
  const values = new Map<TokenKey, string>()
  return {
    get: key => values.get(key) ?? null,
    set: (key, value) => void (value === null ? values.delete(key) : values.set(key, value)),
  }
}

/**
 * Wraps a storage so that its failures end no sign-in. If the storage refuses a value, memory keeps the value. If the
 * storage cannot be read, the returned storage answers with the last known value.
 */
export function toReliable(storage: TokenStorage): TokenStorage {
  const known = new Map<TokenKey, string | null>()
  /** The keys whose values only memory has, because the storage has refused them. */
  const refused = new Set<TokenKey>()
  return {
    async get(key) {
      try {
        if (!refused.has(key)) known.set(key, (await storage.get(key)) ?? null)
      } catch {}
      return known.get(key) ?? null
    },
    async set(key, value) {
      known.set(key, value)
      refused.add(key)
      try {
        await storage.set(key, value)
        if (known.get(key) === value) refused.delete(key)
      } catch {}
    },
    onChange(listener) {
      try {
        return (
          storage.onChange?.(() => {
            // Another tab has changed the storage, so its value is newer than the value in memory.
            refused.clear()
            listener()
          }) ?? (() => {})
        )
      } catch {
        return () => {}
      }
    },
  }
}

/**
 * Creates a storage in the browser's localStorage. All tabs of an origin share one session, and the session survives a
 * restart of the browser. If localStorage does not exist, is full, or throws because the user has disabled it, memory
 * keeps the tokens.
 * @param prefix the text at the start of the names of both tokens in localStorage
 */
export function localStorageStorage(prefix = 'courtside.'): TokenStorage {
  // On a server or in a private window, the access to `localStorage` or each of its methods may throw or do nothing. So
  // each method looks up `localStorage` again.
  return toReliable({
    get: key => globalThis.localStorage.getItem(prefix + key),
    set(key, value) {
      const storage = globalThis.localStorage
      try {
        if (value !== null) storage.setItem(prefix + key, value)
      } catch {}
      // A full storage refuses the new value, and some storages drop it without an error. The old value must not come
      // back after a reload.
      if (value === null || storage.getItem(prefix + key) !== value) storage.removeItem(prefix + key)
      if (storage.getItem(prefix + key) !== value) throw new Error('localStorage has refused the value')
    },
    onChange(listener) {
      const onStorage = ({ key }: StorageEvent) => {
        if (key === null || key === `${prefix}token`) listener()
      }
      globalThis.addEventListener('storage', onStorage)
      return () => globalThis.removeEventListener('storage', onStorage)
    },
  })
}
