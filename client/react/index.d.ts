import type { DetailedHTMLProps, HTMLAttributes, ReactElement } from 'react'
import type { CourtsideInbox as CourtsideInboxElement, CourtsideInboxEventMap } from '../dist/inbox.js'
import type { Courtside } from '../dist/index.js'

type ElementProps = DetailedHTMLProps<HTMLAttributes<CourtsideInboxElement>, CourtsideInboxElement> & {
  /** Whether there is a settings panel. */
  settings?: boolean
  /** The address of the service worker. With it, the settings have a switch for pushes to this device. */
  'service-worker'?: string
}

export type CourtsideInboxProps = Omit<ElementProps, 'ref' | 'children'> & {
  /** The client of the signed-in user. */
  client: Courtside | undefined
  /** Called when the user opens a notification. The event's `detail` is the notification. */
  onNotificationOpen?: (event: CourtsideInboxEventMap['notification-open']) => void
  /** Called when the user presses "Sign in" in the settings, after the end of the session. */
  onSignInRequest?: (event: CourtsideInboxEventMap['sign-in-request']) => void
}

/** Renders the element `<courtside-inbox>`. The component also works in pages that a server renders. */
export function CourtsideInbox(props: CourtsideInboxProps): ReactElement

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'courtside-inbox': ElementProps & { client?: Courtside | undefined }
    }
  }
}
