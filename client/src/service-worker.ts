// Shows the pushes of Courtside. A browser may load a service worker only as a classic script, so this file has neither
// imports nor exports. The block keeps its names out of the global scope, which an app's own worker may share.
{
  type ExtendableEvent = Event & { waitUntil(work: Promise<unknown>): void }
  type PushEvent = ExtendableEvent & { data: { text(): string } | null }
  type ClickEvent = ExtendableEvent & { notification: Notification }
  type ChangeEvent = ExtendableEvent & { oldSubscription: PushSubscription | null }
  type AppWindow = { url: string; focus(): Promise<unknown>; postMessage(message: unknown): void }
  type Worker = {
    registration: ServiceWorkerRegistration
    clients: {
      matchAll(options: { type: 'window'; includeUncontrolled: true }): Promise<AppWindow[]>
      openWindow(url: string): Promise<unknown>
    }
    location: { hostname: string; origin: string }
    navigator: { setAppBadge?(count: number): Promise<void>; clearAppBadge?(): Promise<void> }
    addEventListener<E extends Event>(name: string, listener: (event: E) => void): void
  }
  type Fields = Record<string, unknown>

  const worker = globalThis as unknown as Worker

  /**
   * Shows a push. A browser demands a banner for each push, so a push that we cannot read shows the name of the site.
   */
  const showPush = async (payload: string): Promise<void> => {
    const message = toFields(parse(payload))
    const shown = toFields(message.notification)
    const tag = toText(shown.tag) || 'courtside'
    const options = {
      tag,
      body: toText(shown.body),
      lang: toText(shown.lang),
      dir: ['ltr', 'rtl'].find(dir => dir === shown.dir) ?? 'auto',
      renotify: shown.renotify === true,
      data: { ...toFields(shown.data), navigate: toLink(shown.navigate) },
    } as NotificationOptions
    const title = toText(shown.title) || worker.location.hostname
    await Promise.all([worker.registration.showNotification(title, options), showBadge(message, shown)])
  }

  const showBadge = async (message: Fields, shown: Fields): Promise<void> => {
    const count = message.app_badge ?? shown.app_badge
    if (!Number.isSafeInteger(count) || (count as number) < 0) return
    const { navigator } = worker
    // A device may refuse a badge. The banner is there anyway.
    await (count === 0 ? navigator.clearAppBadge?.() : navigator.setAppBadge?.(count as number))?.catch(() => {})
  }

  /** Focuses a window of the app, and tells it which notification was clicked. Without a window, opens the link. */
  const open = async ({ navigate, ...data }: Fields & { navigate: string }): Promise<void> => {
    const windows = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true })
    // The link may lead to another site, whose windows a service worker does not see.
    const isOurs = new URL(navigate).origin === worker.location.origin
    const found = isOurs ? (windows.find(({ url }) => url === navigate) ?? windows[0]) : undefined
    found?.postMessage({ type: 'courtside-open', navigate, data })
    const isFocused = await found?.focus().then(
      () => true,
      () => false,
    )
    if (!isFocused) await worker.clients.openWindow(navigate)
  }

  const parse = (text: string): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      return undefined
    }
  }

  const toFields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})

  const toText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

  /** Returns the link, or the app's own address if the link is neither http nor https. */
  const toLink = (link: unknown): string => {
    const { scope } = worker.registration
    try {
      const { protocol, href } = new URL(toText(link) ?? scope, scope)
      return /^https?:$/.test(protocol) ? href : scope
    } catch {
      return scope
    }
  }

  worker.addEventListener('push', (event: PushEvent) => event.waitUntil(showPush(event.data?.text() ?? '')))

  worker.addEventListener('notificationclick', (event: ClickEvent) => {
    const { notification } = event
    // If the app has a separate service worker, other notifications may exist. They have no such link.
    if (toText(notification.data?.navigate) === undefined) return
    notification.close()
    event.waitUntil(open(notification.data))
  })

  // The browser has ended the subscription. The client confirms the new one to the service when the app starts.
  worker.addEventListener('pushsubscriptionchange', (event: ChangeEvent) => {
    const { applicationServerKey } = event.oldSubscription?.options ?? {}
    if (!applicationServerKey) return
    event.waitUntil(worker.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey }))
  })
}
