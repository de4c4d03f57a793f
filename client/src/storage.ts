type MaybePromise<T> = T | Promise<T>

/**
 * `token` belongs to the current session. `last_token` belongs to the session before and stays after a sign-out. It no
 * longer authenticates anyone. The client sends it at the next sign-in to select its own lane. Then a stranger who
 * guesses at the address cannot lock its owner out.
 */
export type TokenKey = 'token' | 'last_token'

/** Keeps the tokens. An app can write one with two functions over AsyncStorage or a keychain. */
export type TokenStorage = {
  get(key: TokenKey): MaybePromise<string | null>
  /** Stores a value, or removes it for `null`. */
  set(key: TokenKey, value: string | null): MaybePromise<void>
  /** Calls the listener when another writer, such as another tab, may have changed a value. @returns unsubscribe */
  onChange?(listener: () => void): () => void
}

/** The default storage. It is lost with the page or process. */
export function memoryStorage(): TokenStorage {
  const values = new Map<TokenKey, string>()
  return {
    get: key => values.get(key) ?? null,
    set: (key, value) => void (value === null ? values.delete(key) : values.set(key, value)),
  }
}

/**
 * Stores tokens in the browser's localStorage: one session for all tabs of an origin, which survives restarts. Memory
 * replaces localStorage if it does not exist or the user has forbidden it.
 * @param prefix stands before the two keys
 */
export function localStorageStorage(prefix = 'courtside.'): TokenStorage {
  let local: Storage | undefined
  try {
    // If the user has forbidden localStorage, reading this property throws.
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
