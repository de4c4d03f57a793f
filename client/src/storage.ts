type MaybePromise<T> = T | Promise<T>

/**
 * `token` is the session's. `last_token` is the one of the session before, kept past a sign-out: it opens nothing any
 * more, but sent along when a code is asked for and tried, it keeps strangers who guess at the address from locking its
 * owner out.
 */
export type TokenKey = 'token' | 'last_token'

/** Where tokens are kept. Two functions over AsyncStorage or a keychain will do. */
export type TokenStorage = {
  get(key: TokenKey): MaybePromise<string | null>
  /** `null` removes. */
  set(key: TokenKey, value: string | null): MaybePromise<void>
  /** Calls the listener when somebody else, such as another tab, may have changed something. @returns how to stop it */
  onChange?(listener: () => void): () => void
}

/** Forgets everything with the page or process. The default. */
export function memoryStorage(): TokenStorage {
  const values = new Map<TokenKey, string>()
  return {
    get: key => values.get(key) ?? null,
    set: (key, value) => void (value === null ? values.delete(key) : values.set(key, value)),
  }
}

/**
 * The browser's localStorage: one session for all tabs of an origin, kept over restarts. Where there is none, or the
 * person has forbidden it, memory takes its place.
 * @param prefix stands before the two keys
 */
export function localStorageStorage(prefix = 'courtside.'): TokenStorage {
  let local: Storage | undefined
  try {
    // Where it is forbidden the mere look throws.
    local = globalThis.localStorage
  } catch {}
  if (!local) return memoryStorage()
  const storage = local
  return {
    get: key => storage.getItem(prefix + key),
    set: (key, value) => (value === null ? storage.removeItem(prefix + key) : storage.setItem(prefix + key, value)),
    onChange(listener) {
      const changed = ({ key }: StorageEvent) => {
        if (key === null || key === `${prefix}token`) listener()
      }
      globalThis.addEventListener('storage', changed)
      return () => globalThis.removeEventListener('storage', changed)
    },
  }
}
