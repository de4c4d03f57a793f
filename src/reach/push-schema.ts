import { timestamp } from '../http/format/timestamp.ts'
import { Type } from '../http/type.ts'
import { readAuthSecret, readPublicKey } from './encryption.ts'
import { MAX_ENDPOINT_LENGTH } from './push-hosts.ts'

const Endpoint = Type.String({
  minLength: 1,
  maxLength: MAX_ENDPOINT_LENGTH,
  examples: ['https://updates.push.services.mozilla.com/wpush/v2/gAAAAABk'],
})

export const PushKey = Type.Object(
  {
    public_key: Type.String({
      description: 'The `applicationServerKey` for `pushManager.subscribe`, in base64url.',
    }),
  },
  { title: 'PushKey' },
)

/** What `PushSubscription.toJSON()` returns in a browser, and two members of our own. */
export const SubscriptionRequest = Type.Object(
  {
    endpoint: Endpoint,
    keys: Type.Object({
      p256dh: Type.String({
        examples: ['BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'],
        check: text => readPublicKey(text) !== undefined,
        published: { pattern: '^B[\\w-]{86}$' },
        rule: {
          fr: 'Le champ p256dh doit être un point de la courbe P-256, 65 octets en base64url.',
          en: 'The p256dh field must be a point of the curve P-256, 65 bytes in base64url.',
        },
      }),
      auth: Type.String({
        examples: ['BTBZMqHH6r4Tts7J_aSIgg'],
        check: text => readAuthSecret(text) !== undefined,
        published: { pattern: '^[\\w-]{22}$' },
        rule: {
          fr: 'Le champ auth doit contenir 16 octets en base64url.',
          en: 'The auth field must be 16 bytes in base64url.',
        },
      }),
    }),
    public_key: Type.Optional(
      Type.String({
        description:
          'The `applicationServerKey` with which the browser subscribed, in base64url. Without it, the service assumes ' +
          'the key of an earlier request for the same subscription, or the newest key.',
      }),
    ),
    time_zone: Type.Optional(
      Type.String({ description: 'The time zone of the device.', examples: ['Europe/Paris'], maxLength: 100 }),
    ),
  },
  { title: 'PushSubscriptionRequest' },
)

export const SubscriptionPath = Type.Object({ endpoint: Endpoint }, { title: 'PushEndpoint' })

export const Subscription = Type.Object(
  {
    id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    created_at: Type.String({ format: 'date-time', examples: ['2026-01-17T14:30:00+00:00'] }),
  },
  { title: 'PushSubscription' },
)

export function toSubscription({ id, created_at }: { id: number; created_at: Date }) {
  return { id, created_at: timestamp(created_at) }
}
