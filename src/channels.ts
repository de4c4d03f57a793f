import { sendCode } from './auth/send-code.ts'
import type { Context } from './context.ts'
import { findRetryClass, MAIL_CLASSES } from './limits/mail-backlog.ts'
import { findSenderDomain } from './mail/mailer.ts'
import type { Channel } from './outbox/channel.ts'
import { createQueueMover } from './outbox/previous-queue.ts'
import { createExpander } from './reach/expand.ts'
import { sendPush } from './reach/push-channel.ts'
import { createPushClient, type PushClient } from './reach/push-client.ts'
import { createFindEndpoint, findPort } from './reach/push-hosts.ts'
import { PUSH_CLASSES } from './reach/push-look.ts'
import { createReport } from './reach/push-report.ts'
import { sendDigest } from './reach/send-digest.ts'
import { createVapid } from './reach/vapid.ts'
import { startSweeping } from './reach/waiting-mail.ts'

const MAX_MAIL_DELAY_MS = 400

/**
 * Returns the channels of the outbox that a worker serves, and starts the search for people to whom a mail about unread
 * notifications is due.
 * @param address the address at which this process listens, for the links in the mails of a development service
 */
export function startChannels(ctx: Context, address: string): { channels: Channel[]; stop(): Promise<void> } {
  const { sql, hints, now, log, config } = ctx
  const publicUrl = config.links.public ?? (config.isDevelopment ? address : undefined)
  const { preferenceDefaults, emailAfterMs, emailAfterUrgentMs } = config
  const hashReceiver = (userId: number) => ctx.networks.hashText(`receiver:${userId}`)
  const common = { sql, hints, now, preferenceDefaults, emailAfterMs, emailAfterUrgentMs, hashReceiver }
  const expand = createExpander({ ...common, sendsMails: publicUrl !== undefined })
  const sweeping = publicUrl === undefined ? undefined : startSweeping(common, log)
  const pushClient = createPushClient()
  return {
    channels: [
      createMailChannel(ctx, publicUrl),
      createAnnouncementChannel(expand),
      createPushChannel(ctx, pushClient, address),
    ],
    async stop() {
      pushClient.close()
      await sweeping?.stop()
    },
  }
}

function createMailChannel(ctx: Context, publicUrl: string | undefined): Channel {
  const { config, metrics } = ctx
  const mailCode = sendCode({ ...ctx, texts: config })
  const { preferenceDefaults, links, appName, mailFrom } = config
  const mailDigest =
    publicUrl === undefined
      ? undefined
      : sendDigest({
          ...ctx,
          preferenceDefaults,
          publicUrl,
          texts: { appName, links: { ...links, public: publicUrl } },
          domain: findSenderDomain(mailFrom),
          countWithdrawnBounces: metrics.countWithdrawnBounces,
        })
  return {
    name: 'mail',
    classes: Object.values(MAIL_CLASSES),
    findRetryClass,
    places: config.mailConcurrency,
    maxStartDelayMs: MAX_MAIL_DELAY_MS,
    deliver: async delivery => {
      if (delivery.user_id === null) return mailCode(delivery)
      return mailDigest ? mailDigest(delivery) : { outcome: 'off' }
    },
    prepare: createQueueMover(),
  }
}

/**
 * Makes the pushes and mails of new notifications. The worker handles one announcement at a time, which is fast enough
 * and keeps the order.
 */
function createAnnouncementChannel(deliver: Channel['deliver']): Channel {
  return { name: 'announcement', classes: [1], findRetryClass: failed => failed, places: 1, deliver }
}

/** A process without a key takes part too: it leaves the pushes to the processes that have their keys. */
function createPushChannel(ctx: Context, client: PushClient, address: string): Channel {
  const { config, vapidKeys, log } = ctx
  const { isDevelopment, links } = config
  return {
    name: 'push',
    classes: Object.values(PUSH_CLASSES),
    findRetryClass: failed => failed,
    places: config.pushConcurrency,
    deliver: sendPush({
      ...ctx,
      defaults: config.preferenceDefaults,
      links: { ...links, public: links.public ?? (isDevelopment ? address : undefined) },
      vapid: createVapid(vapidKeys, config.vapidSubject),
      findEndpoint: createFindEndpoint(config.pushHosts, () =>
        isDevelopment ? findPort(new URL(address)) : undefined,
      ),
      client,
      report: createReport(log),
    }),
  }
}
