import { createHmac, randomInt, randomUUID } from 'node:crypto'
import type { Query } from '../../src/db/sql.ts'
import { deriveKeys } from '../../src/keys.ts'
import { NOTIFICATION_COLUMNS } from '../../src/notifications/schema.ts'
import { sendMails } from './mails.ts'

const WEEK_MS = 7 * 24 * 3_600_000
const CODE_MS = 15 * 60_000

/**
 * Creates the functions with which the ceiling, the minimal server in `ceiling.ts`, writes. Each function runs the
 * fewest statements that keep the guarantee. Each statement is a separate commit. One statement marks or deletes a
 * notification. A sign-up takes three statements. The first stores the code and its mail, and the second counts the
 * attempt. The third uses the code up and opens the session.
 */
export function createWriteCeiling(sql: Query) {
  const keys = deriveKeys([process.env.JWT_SECRET!])
  const mails = sendMails(ids => sql`delete from ceiling_mail where id = any(${ids}::uuid[])`)
  return {
    mailed: mails.take,

    async markRead(userId: number, id: number) {
      const now = new Date()
      const [row] = await sql<{ json: string }>`
        with changed as (
          update notification set read_at = ${now}, updated_at = ${now}
          where user_id = ${userId} and id = ${id} and read_at is null
          returning id, type, title, message, data, read_at, created_at
        )
        select row_to_json(wire)::text as json from (select ${NOTIFICATION_COLUMNS} from changed) as wire`
      return `{"data":${row!.json}}`
    },

    async remove(userId: number, id: number) {
      await sql`delete from notification where user_id = ${userId} and id = ${id}`
      return { message: 'La notification a été supprimée.' }
    },

    async request({ email, first_name, last_name }: Record<string, string>) {
      const [id, code, now] = [randomUUID(), String(randomInt(10_000)).padStart(4, '0'), Date.now()]
      await sql`
        with code as (
          insert into ceiling_code (id, email, mac, first_name, last_name, expires_at)
          values (${id}, ${email}, ${keys.mac(id, code)}, ${first_name}, ${last_name}, ${new Date(now + CODE_MS)})
          returning id
        )
        insert into ceiling_mail (id, email, sealed) select id, ${email}, ${keys.seal(id, code)} from code`
      mails.add({ id, email: email!, code })
      return { message: 'Si cette adresse peut se connecter, un code vient de lui être envoyé.' }
    },

    async verify({ email, code }: Record<string, string>) {
      const now = new Date()
      const [reserved] = await sql<{ id: string; mac: Buffer }>`
        update ceiling_code set attempts = attempts + 1
        where email = ${email} and attempts < 5 and expires_at > ${now}
        returning id, mac`
      if (!reserved || !keys.mac(reserved.id, code!).equals(reserved.mac)) return {}
      const [session] = await sql<{ id: string; user_id: number }>`
        with spent as (
          delete from ceiling_code where id = ${reserved.id} returning email, first_name, last_name
        ), account as (
          insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at,
            updated_at)
          select email, first_name, last_name, 'fr', '1', ${now}, ${now}, ${now} from spent
          returning id
        )
        insert into session (user_id, created_at, expires_at, issued_at)
        select id, ${now}, ${new Date(now.getTime() + WEEK_MS)}, ${now} from account
        returning id, user_id`
      return { access_token: sign(String(session!.user_id), session!.id, now), is_new_user: true }
    },
  }
}

function sign(sub: string, sid: string, now: Date): string {
  const iat = Math.floor(now.getTime() / 1000)
  const claims = { iss: 'courtside', sub, iat, nbf: iat, exp: iat + 3600, jti: `${sid}.1`, sid }
  const [header, payload] = [{ alg: 'HS256', typ: 'JWT' }, claims].map(part =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  const mac = createHmac('sha256', process.env.JWT_SECRET!).update(`${header}.${payload}`).digest('base64url')
  return `${header}.${payload}.${mac}`
}
