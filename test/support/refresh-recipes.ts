// The ways in which ten HTTP libraries document "401 → refresh → repeat". Each recipe has the control flow of the
// documentation that its comment names, but calls `send` instead of the library. The packages themselves would add
// several hundred packages to `npm ci`.

/** The storage that all tabs of a user share, such as `localStorage`. */
export type Store = { token: string; isSignedOut: boolean }

export type Answer = { status: number; token?: string }

/** Sends a request with a token. The answers arrive late, each at a different time. */
export type Send = (path: string, token: string) => Promise<Answer>

/** Creates the client of one tab. The client sends a request, and returns the status of the last answer. */
export type Recipe = (store: Store, send: Send) => () => Promise<number>

const ME = '/api/v1/auth/me'
const REFRESH = '/api/v1/auth/refresh'

/** Refreshes the stored token and stores the new one. Signs the user out if the service refuses the refresh. */
async function refreshStored(store: Store, send: Send): Promise<string> {
  const { status, token } = await send(REFRESH, store.token)
  if (status !== 200 || token === undefined) {
    store.isSignedOut = true
    throw new Error(`the refresh got ${status}`)
  }
  store.token = token
  return token
}

/** Returns a function that runs `work` only once at a time. Concurrent calls get the result of the running one. */
function shared<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => {
    running ??= work().finally(() => {
      running = undefined
    })
    return running
  }
}

/** Redux Toolkit, "Automatic re-authorization by extending fetchBaseQuery". */
const rtkQuery: Recipe = (store, send) => async () => {
  const first = await send(ME, store.token)
  if (first.status !== 401) return first.status
  await refreshStored(store, send)
  return (await send(ME, store.token)).status
}

/**
 * TanStack Query, "Query Retries": the query function refreshes and throws, and the library tries again three times.
 */
const tanstackQuery: Recipe = (store, send) => async () => {
  for (let failures = 0; ; failures += 1) {
    const { status } = await send(ME, store.token)
    if (status !== 401 || failures === 3) return status
    await refreshStored(store, send)
  }
}

/** ky, "hooks.afterResponse": the hook repeats the same request with the token from the answer. */
const ky: Recipe = (store, send) => async () => {
  const first = await send(ME, store.token)
  if (first.status !== 401) return first.status
  const token = await refreshStored(store, send)
  return (await send(ME, token)).status
}

/** ofetch, "Auto Retry" and "Interceptors": the interceptor refreshes after every 401, the library repeats once. */
const ofetch: Recipe = (store, send) => async () => {
  const first = await send(ME, store.token)
  if (first.status === 401) await refreshStored(store, send)
  else return first.status
  const second = await send(ME, store.token)
  if (second.status === 401) await refreshStored(store, send)
  return second.status
}

/** got, "hooks.afterResponse": the hook merges the token into the defaults of the instance, and repeats the request. */
const got: Recipe = (store, send) => {
  let defaults: string | undefined
  return async () => {
    const first = await send(ME, defaults ?? store.token)
    if (first.status !== 401) return first.status
    defaults = await refreshStored(store, send)
    return (await send(ME, defaults)).status
  }
}

/**
 * axios, "Interceptors": the response interceptor marks the request as repeated. The request interceptor adds the
 * token.
 */
const axios: Recipe = (store, send) => {
  const request = async (isRepeated: boolean): Promise<number> => {
    const { status } = await send(ME, store.token)
    if (status !== 401 || isRepeated) return status
    await refreshStored(store, send)
    return request(true)
  }
  return () => request(false)
}

/** axios with a queue of failed requests (gist by Godofbrowser): requests wait while another request refreshes. */
const axiosQueue: Recipe = (store, send) => {
  let isRefreshing = false
  const queue: { resolve: (token: string) => void; reject: (error: unknown) => void }[] = []
  return async () => {
    const first = await send(ME, store.token)
    if (first.status !== 401) return first.status
    if (isRefreshing) {
      const token = await new Promise<string>((resolve, reject) => void queue.push({ resolve, reject }))
      return (await send(ME, token)).status
    }
    isRefreshing = true
    const finish = (settle: (request: (typeof queue)[number]) => void) => {
      for (const request of queue.splice(0)) settle(request)
      isRefreshing = false
    }
    try {
      const token = await refreshStored(store, send)
      finish(({ resolve }) => resolve(token))
      return (await send(ME, token)).status
    } catch (error) {
      finish(({ reject }) => reject(error))
      throw error
    }
  }
}

/** axios-auth-refresh: failed requests share one refresh, and new requests wait for a running refresh. */
const axiosAuthRefresh: Recipe = (store, send) => {
  let running: Promise<unknown> | undefined
  const refresh = shared(() => refreshStored(store, send))
  return async () => {
    await running
    const first = await send(ME, store.token)
    if (first.status !== 401) return first.status
    running = refresh()
    await running
    return (await send(ME, store.token)).status
  }
}

/** wretch, "Catchers": the catcher of `unauthorized` replays the request with the new token. */
const wretch: Recipe = (store, send) => async () => {
  const replay = async () => (await send(ME, await refreshStored(store, send))).status
  const { status } = await send(ME, store.token)
  return status === 401 ? replay() : status
}

/**
 * openapi-fetch, "Middleware & Auth", with one refresh for all requests of a tab, as docs/integrating.md recommends.
 */
const openapiFetch: Recipe = (store, send) => {
  const refresh = shared(() => refreshStored(store, send))
  return async () => {
    const { status } = await send(ME, store.token)
    return status === 401 ? (await send(ME, await refresh())).status : status
  }
}

export const RECIPES: Record<string, Recipe> = {
  'RTK Query': rtkQuery,
  'TanStack Query': tanstackQuery,
  ky,
  ofetch,
  got,
  axios,
  'axios with a queue': axiosQueue,
  'axios-auth-refresh': axiosAuthRefresh,
  wretch,
  'openapi-fetch': openapiFetch,
}
