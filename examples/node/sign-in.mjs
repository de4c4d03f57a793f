// Signs a user in with a code that the service mails, then shows the user's profile and notifications.
//
//   node sign-in.mjs EMAIL [FIRST_NAME LAST_NAME]      (pass the names only to sign up)
//
// COURTSIDE_URL is the address of the service. COURTSIDE_TOKEN_FILE is the file in which the program stores the token,
// so the next run needs no code. An app would store the token in the keychain of the phone instead.
import { readFile, writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'

const url = process.env.COURTSIDE_URL ?? 'http://127.0.0.1:3000'
const tokenFile = process.env.COURTSIDE_TOKEN_FILE ?? '.courtside-token'
const [email, firstName, lastName] = process.argv.slice(2)
if (!email) fail('usage: node sign-in.mjs EMAIL [FIRST_NAME LAST_NAME]')

let token = await readFile(tokenFile, 'utf8').then(
  kept => kept.trim(),
  () => undefined,
)

if (!token || !(await show())) {
  await signIn()
  await show()
}

/** Shows the profile and the newest notifications. Returns false if the session has ended. */
async function show() {
  const me = await call('GET', '/api/v1/auth/me')
  if (!me) return false
  console.log(`signed in as ${me.data.first_name} ${me.data.last_name} (user ${me.data.id})`)
  const { data, meta } = await call('GET', '/api/v1/notifications')
  console.log(`${meta.unread_count} unread of ${meta.total}`)
  for (const { is_read, title, message } of data) console.log(`${is_read ? ' ' : '*'} ${title}: ${message}`)
  return true
}

/** Requests a code by mail and exchanges the code for a token. */
async function signIn() {
  const signUp = firstName && { first_name: firstName, last_name: lastName, accept_cgu: true }
  // If the token file contains an old token, both requests contain this token. The old token gives no access any more,
  // but it shows that this client has signed in before. The service gives such a client a code, a number of attempts
  // and a waiting time of its own. So a stranger who guesses codes for the same address cannot make this user wait.
  const asked = await send('POST', '/api/v1/auth/request-otp', { email, ...signUp })
  if (asked.status !== 200) refuse(asked)
  console.log(asked.body.message)

  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const code = await terminal.question('code: ')
  terminal.close()
  // The code must stay a string, because it may begin with zeros: 0042.
  const verified = await send('POST', '/api/v1/auth/verify-otp', { email, code })
  if (verified.status !== 200) refuse(verified)
  await keep(verified.body.access_token)
}

/**
 * Sends a request with the user's token. If the token has expired, refreshes the token and repeats the request. Returns
 * undefined if the session has ended.
 */
async function call(method, path, body) {
  let answer = await send(method, path, body)
  if (answer.status === 401) {
    const refreshed = await send('POST', '/api/v1/auth/refresh')
    // A 401 means that the session has ended, by a logout or because its days are over. After any other error, the
    // token is still valid.
    if (refreshed.status === 401) return undefined
    if (refreshed.status !== 200) refuse(refreshed)
    await keep(refreshed.body.access_token)
    answer = await send(method, path, body)
  }
  if (answer.status !== 200) refuse(answer)
  return answer.body
}

async function send(method, path, body) {
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })
  return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() }
}

/**
 * Stores a new token before its first use. Soon after the first use of a new token, the service refuses the previous
 * token. If the program lost the new token after the first use, the user would have to sign in again.
 */
async function keep(newest) {
  token = newest
  await writeFile(tokenFile, newest, { mode: 0o600 })
}

/**
 * Ends the program after a failed request. Every error has a `message` for people and a `code` for programs. The
 * answers 429 and 503 also have the HTTP header Retry-After.
 */
function refuse({ status, retryAfter, body }) {
  fail(`${status} ${body.code}: ${body.message}${retryAfter ? ` (try again in ${retryAfter} s)` : ''}`)
}

function fail(text) {
  console.error(text)
  process.exit(1)
}
