import type { Harness } from './app.ts'
import { makeNotifications, makeUser } from './factories.ts'

export const ISO_8601_WITH_OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/

/** Returns functions that list and read notifications over HTTP. */
export function inbox(h: Harness) {
  const list = async (token: string, query = '') =>
    (await h.call('GET', `/api/v1/notifications${query}`, { token })).body
  const read = (token: string, id: number | undefined) => h.call('POST', `/api/v1/notifications/${id}/read`, { token })

  /** Creates a user with an unread and a read notification. @returns the two notifications, as `GET` lists them */
  async function makeOneOfEach() {
    const { id, token } = await makeUser(h)
    const [older] = await makeNotifications(h, id, 2)
    await read(token, older)
    const { data, meta } = await list(token)
    return { id, token, unread: data[0], read: data[1], meta }
  }

  return { list, read, makeOneOfEach }
}
