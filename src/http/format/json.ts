import type { FastifyReply } from 'fastify'

/** Sends text that is already JSON. @returns the reply, which the handler must return */
export function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}
