// A notification inbox, written in the usual way with Express and Prisma. The program verifies a signed token, and runs
// three queries per page.
import { PrismaPg } from '@prisma/adapter-pg'
import express, { type NextFunction, type Request, type Response } from 'express'
import jwt from 'jsonwebtoken'
import { PrismaClient } from '../generated/client.ts'

const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL!, max: 5 }) })
const app = express()
app.use(express.json())

app.get('/readyz', async (_request, response) => {
  await prisma.notification.findFirst()
  response.json({})
})

app.use('/api/v1/notifications', (request: Request, response: Response, next: NextFunction) => {
  try {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    const { sub } = jwt.verify(token, process.env.JWT_SECRET!, { algorithms: ['HS256'] })
    response.locals.userId = Number(sub)
    next()
  } catch {
    response.status(401).json({ message: 'Unauthenticated.' })
  }
})

app.get('/api/v1/notifications', async (request, response) => {
  const { userId } = response.locals
  const page = Number(request.query.page ?? 1)
  const [rows, total, unread] = await Promise.all([
    prisma.notification.findMany({ where: { userId }, orderBy: { id: 'desc' }, skip: (page - 1) * 20, take: 20 }),
    prisma.notification.count({ where: { userId } }),
    prisma.notification.count({ where: { userId, readAt: null } }),
  ])
  const last_page = Math.max(1, Math.ceil(total / 20))
  response.json({
    data: rows.map(present),
    meta: { current_page: page, last_page, per_page: 20, total, unread_count: unread },
  })
})

app.get('/api/v1/notifications/unread-count', async (_request, response) => {
  const { userId } = response.locals
  response.json({ unread_count: await prisma.notification.count({ where: { userId, readAt: null } }) })
})

app.post('/api/v1/notifications/:id/read', async (request, response) => {
  const id = Number(request.params.id)
  const existing = await prisma.notification.findUnique({ where: { id } })
  if (!existing) return response.status(404).json({ message: 'Not Found' })
  if (existing.userId !== response.locals.userId) return response.status(403).json({ message: 'Forbidden' })
  const row = await prisma.notification.update({ where: { id }, data: { readAt: existing.readAt ?? new Date() } })
  return response.json({ data: present(row) })
})

function present(row: Awaited<ReturnType<typeof prisma.notification.findFirstOrThrow>>) {
  const { id, type, title, message, data, readAt, createdAt } = row
  return { id, type, title, message, data, is_read: readAt !== null, read_at: readAt, created_at: createdAt }
}

app.listen(Number(process.env.PORT), '127.0.0.1')
