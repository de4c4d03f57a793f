// Makes the deliveries of new notifications in a separate process, for a test that kills the process. Usage:
// node test/support/expander.ts DATABASE_URL
import { pino } from 'pino'
import { createHints } from '../../src/db/hints.ts'
import { connect } from '../../src/db/sql.ts'
import * as outbox from '../../src/outbox/outbox.ts'
import { createExpander } from '../../src/reach/expand.ts'

const sql = connect(process.argv[2]!, { name: 'expander' })
const expand = createExpander({
  sql,
  hints: createHints(sql, pino({ level: 'warn' })),
  now: () => new Date(),
  preferenceDefaults: {
    emailTypes: new Set(['game_cancelled']),
    quietHours: { enabled: false, from: '22:00', to: '08:00' },
    timeZone: 'Europe/Paris',
  },
  emailAfterMs: 0,
  emailAfterUrgentMs: 0,
  hashReceiver: async () => Buffer.from('receiver'),
  sendsMails: true,
})
const lastNetworks = new Map([[1, Buffer.alloc(0)]])
for (const row of await outbox.claim(sql, {
  channel: 'announcement',
  limit: 1,
  lastNetworks,
  lapsedBefore: undefined,
})) {
  await expand(row)
}
