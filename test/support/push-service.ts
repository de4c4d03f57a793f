import { createECDH, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import ece from 'http_ece'
import { importJWK, jwtVerify } from 'jose'

/**
 * The reaction of the push service to a push. A number is the status of its answer. `hang` never answers, `reset`
 * closes the connection, `huge` answers 201 with a body without end, and `slow` sends a byte of its answer each 100 ms.
 */
export type Answer = number | { status: number; headers: Record<string, string> } | 'hang' | 'reset' | 'huge' | 'slow'

/** A push that the service has received, verified and decrypted. */
export type ReceivedPush = {
  path: string
  headers: Record<string, string>
  claims: { aud: string; exp: number; sub: string }
  token: string
  message: any
  bytes: number
}

type Browser = { keys: ReturnType<typeof createECDH>; auth: Buffer }

const [KEY, CERTIFICATE] = ['key', 'cert'].map(name =>
  readFileSync(new URL(`push-service.${name}.pem`, import.meta.url), 'utf8'),
)
/** The certificate of the secure push service, for `localhost` and `push.example`. */
export const PUSH_CERTIFICATE = CERTIFICATE!

export type PushService = Awaited<ReturnType<typeof pushService>>

/**
 * Starts a push service on this machine, which stands for the browsers too. It verifies the signature of each push with
 * jose and decrypts the push with http_ece.
 */
export async function pushService({ secure = false } = {}) {
  const browsers = new Map<string, Browser>()
  const sockets = new Set<Socket>()
  const service = {
    /** All pushes in the order of their arrival, whatever the answer was. */
    pushes: [] as ReceivedPush[],
    /** The reasons why pushes were not valid. The service answers such a push with 403. */
    faults: [] as string[],
    connections: 0,
    /** Returns the answer to a push. The push is not among `pushes` yet. */
    answer: (_push: ReceivedPush): Answer | Promise<Answer> => 201,
  }
  const handle: RequestListener = (request, response) => {
    receive(request, browsers, `${secure ? 'https' : 'http'}://${request.headers.host}`)
      .then(async push => {
        const answer = await service.answer(push)
        service.pushes.push(push)
        await reply(response, answer)
      })
      .catch(error => {
        service.faults.push((error as Error).message)
        response.writeHead(403).end()
      })
  }
  const server = secure ? createSecureServer({ key: KEY!, cert: CERTIFICATE! }, handle) : createServer(handle)
  server.on('connection', socket => {
    service.connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(service, {
    port,
    /** The value of PUSH_HOSTS that lists this service. */
    hosts: `localhost:${port}`,
    base: `${secure ? 'https' : 'http'}://localhost:${port}`,
    /** Makes a subscription, as `PushSubscription.toJSON()` returns it in a browser. */
    subscribe(base = `${secure ? 'https' : 'http'}://localhost:${port}`) {
      const browser = { keys: createECDH('prime256v1'), auth: randomBytes(16) }
      const p256dh = browser.keys.generateKeys('base64url')
      const path = `/push/${randomBytes(12).toString('base64url')}`
      browsers.set(path, browser)
      return { endpoint: `${base}${path}`, keys: { p256dh, auth: browser.auth.toString('base64url') } }
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  })
}

async function receive(
  request: IncomingMessage,
  browsers: Map<string, Browser>,
  audience: string,
): Promise<ReceivedPush> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const headers = request.headers as Record<string, string>
  const browser = browsers.get(request.url!)
  if (!browser) throw new Error(`no browser has subscribed at ${request.url}`)
  if (headers['content-encoding'] !== 'aes128gcm') throw new Error('the content coding is not aes128gcm')
  if (request.method !== 'POST' || !/^\d+$/.test(headers.ttl ?? '')) throw new Error('a push is a POST with a TTL')
  const [, token = '', key = ''] = /^vapid t=([^,]+), ?k=(.+)$/.exec(headers.authorization ?? '') ?? []
  const point = Buffer.from(key, 'base64url')
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  }
  const { payload } = await jwtVerify(token, await importJWK(jwk, 'ES256'), { audience, algorithms: ['ES256'] })
  if (payload.exp! * 1_000 > Date.now() + 86_400_000) throw new Error('the token is valid for more than 24 hours')
  if (!/^(mailto:|https:)/.test(String(payload.sub))) throw new Error('the token has no subject')
  const text = ece.decrypt(body, { version: 'aes128gcm', privateKey: browser.keys, authSecret: browser.auth })
  return {
    path: request.url!,
    headers,
    token,
    claims: payload as ReceivedPush['claims'],
    message: JSON.parse(text.toString('utf8')),
    bytes: text.length,
  }
}

async function reply(response: ServerResponse, answer: Answer): Promise<void> {
  if (typeof answer === 'number') return void response.writeHead(answer).end()
  if (typeof answer === 'object') return void response.writeHead(answer.status, answer.headers).end()
  if (answer === 'hang') return
  if (answer === 'reset') return void response.socket?.destroy()
  if (answer === 'huge') {
    response.writeHead(201)
    while (!response.destroyed && response.write(Buffer.alloc(64 * 1_024))) await delay(0)
    return
  }
  for (const byte of 'HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n') {
    response.socket?.write(byte)
    await delay(100)
    if (response.destroyed) return
  }
}
