import assert from 'node:assert/strict'
import type { Harness } from './app.ts'
import { otherThan, queuedCode, readPayload } from './scenario.ts'

/** The settings of an app with a mail server, so budgets and limits are on. No worker runs, so no mail is sent. */
export const WITH_BUDGETS = { SMTP_URL: 'smtp://localhost:1' }

/** Returns an address in the network with this number. `host` selects an address in the network. */
export function addressIn(network: number, host = 1): string {
  return `2001:db8:${network.toString(16)}::${host.toString(16)}`
}

type From = { network?: number; token?: string | undefined }
type Answer = Awaited<ReturnType<Harness['call']>>

/** Requests and guesses from numbered networks. The default network has the number 0. */
export function strangers(h: Harness) {
  const post = (path: string, body: unknown, { network = 0, token }: From): Promise<Answer> =>
    h.call('POST', `/api/v1/auth/${path}`, { body, token, remoteAddress: addressIn(network) })
  const request = (body: object | string, from: From = {}) =>
    post('request-otp', typeof body === 'string' ? { email: body } : body, from)
  const guess = (email: string, code: string, from: From = {}) => post('verify-otp', { email, code }, from)

  return {
    request,
    guess,
    /** Requests a code, checks that it was sent, and returns it. */
    async ask(body: object | string, from: From = {}): Promise<string> {
      const answer = await request(body, from)
      assert.equal(answer.status, 200, answer.text)
      const email = typeof body === 'string' ? body : (body as { email: string }).email
      if (from.token !== undefined) return queuedCode(h, email, readPayload(from.token).sid)
      return queuedCode(h, email, null, addressIn(from.network ?? 0))
    },
    /** Sends a number of wrong guesses one after the other, and checks that all get the same 422. */
    async miss(email: string, code: string, count: number, from: From = {}): Promise<void> {
      for (let index = 0; index < count; index += 1) {
        const answer = await guess(email, otherThan(code.slice(0, 4)), from)
        assert.deepEqual([answer.status, answer.body.code], [422, 'otp_invalid'])
      }
    },
    /** Enters the parts of a code, and returns the last answer. */
    async enter(email: string, code: string, from: From = {}): Promise<Answer> {
      let answer: Answer | undefined
      for (const part of code.split(' ')) answer = await guess(email, part, from)
      return answer!
    },
  }
}
