/**
 * Returns whether this browser can receive pushes, and whether the user has allowed them. On an iPhone or iPad, only a
 * site on the home screen can receive pushes. Outside of a browser, the result is `unsupported`.
 */
export function findPushSupport(): 'unsupported' | 'needs-install' | NotificationPermission {
  const { navigator, Notification, PushManager } = globalThis
  if (!navigator?.serviceWorker) return 'unsupported'
  if (PushManager && Notification) return Notification.permission
  // Only the browsers of iPhones and iPads have this property. It is true on the home screen.
  const { standalone } = navigator as Navigator & { standalone?: boolean }
  return standalone === false ? 'needs-install' : 'unsupported'
}
