import type { FastifyReply } from 'fastify'

/** Sends what is JSON already. @returns what a handler returns that has answered */
export function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}
