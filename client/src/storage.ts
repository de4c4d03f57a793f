type MaybePromise<T> = T | Promise<T>

/**
 * The name of a stored token. `token` is the token of the current session. `last_token` is the last token of the
 * previous session. The client keeps `last_token` after a sign-out and sends it at the next sign-in. The service then
 * counts the guesses of this client in a separate lane. So a stranger who guesses codes for the address cannot lock
 * the user out.
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
 * Creates a storage in the browser's localStorage. All tabs of an origin share one session, and the session survives a
 * restart of the browser. If localStorage does not exist or the user has disabled it, this function returns a storage
 * in memory.
 * @param prefix the text at the start of the names of both tokens in localStorage
 */
export function localStorageStorage(prefix = 'courtside.'): TokenStorage {
  let local: Storage | undefined
  try {
    // If the user has disabled localStorage, the access to the property `localStorage` throws.
    local = globalThis.localStorage
  } catch {}
  if (!local) return memoryStorage()
  const storage = local
  return {
    get: key => storage.getItem(prefix + key),
    set: (key, value) => (value === null ? storage.removeItem(prefix + key) : storage.setItem(prefix + key, value)),
    onChange(listener) {
      const onStorage = ({ key }: StorageEvent) => {
        if (key === null || key === `${prefix}token`) listener()
      }
      globalThis.addEventListener('storage', onStorage)
      return () => globalThis.removeEventListener('storage', onStorage)
    },
  }
}
