import { type Fragment, fragment } from '../db/statement.ts'
import { MAIL_CLASSES } from '../limits/mail-backlog.ts'
import type { NewCode } from './new-code.ts'

/** The number of mails of one network that may wait in the class that goes first. */
const MAX_FIRST_MAILS = 5

/**
 * Returns the step that adds the mail of the code in the subquery `issued` to the outbox. If the code was repeated and
 * its first mail has not left yet, the step adds no mail.
 *
 * Mails to known clients go first, then mails to accounts, then mails for sign-ups. A decoy has the class of the
 * accounts, so its turn does not reveal that the address is unknown. Within a class, networks take turns.
 *
 * Only a few mails of a network go first. Otherwise, one network with tokens of many accounts could keep all mails
 * without a token waiting. Further mails to its known clients have the class of the accounts.
 */
export function queueMail({ language, sessionId, network, now }: NewCode): Fragment {
  const goesFirst =
    sessionId === undefined ? fragment`false` : fragment`session_id is not null and ${isAmongFirst(network)}`
  return fragment`
    mail as (
      insert into outbox (channel, class, network, created_at, due, code_id, payload)
      select 'mail', case
          when ${goesFirst} then ${MAIL_CLASSES.knownClient}::smallint
          when purpose = 'sign_up' then ${MAIL_CLASSES.signUp} else ${MAIL_CLASSES.account} end,
        ${network}, ${now}, ${now}, id, jsonb_build_object('sealed', sealed, 'language', ${language}::text)
      from issued
      on conflict (code_id) where code_id is not null do nothing
    )`
}

/** Returns whether fewer than `MAX_FIRST_MAILS` mails of a network wait in the class that goes first. */
function isAmongFirst(network: Buffer): Fragment {
  return fragment`
    (select count(*) from (
      select from outbox
      where ready and channel = 'mail' and class = ${MAIL_CLASSES.knownClient} and outbox.network = ${network}
      limit ${MAX_FIRST_MAILS}
    ) as first) < ${MAX_FIRST_MAILS}`
}
